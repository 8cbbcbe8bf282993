# Nothing: find_package goes on to the Eigen of this machine, so that a test downloads nothing.
set(VCPKG_POLICY_EMPTY_PACKAGE enabled)

// SPDX-License-Identifier: MIT
#pragma once

#include <infty/io/safetensors_file.hpp>
#include <infty/io/safetensors_writer.hpp>

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "harness/json_access.h"

/// The reading of JSON of test/harness, by the same names.
namespace lpp::devcluster {

using lpp::testing::annotation;
using lpp::testing::array_at;
using lpp::testing::at_path;
using lpp::testing::child;
using lpp::testing::dump;
using lpp::testing::find_at;
using lpp::testing::flag_at;
using lpp::testing::has_annotation;
using lpp::testing::has_finalizer;
using lpp::testing::is_blank;
using lpp::testing::is_deleting;
using lpp::testing::Json;
using lpp::testing::key_of;
using lpp::testing::name_of;
using lpp::testing::namespace_of;
using lpp::testing::number_at;
using lpp::testing::object_at;
using lpp::testing::object_in;
using lpp::testing::parse_json;
using lpp::testing::set_condition;
using lpp::testing::set_default;
using lpp::testing::split_key;
using lpp::testing::SplitKey;
using lpp::testing::text_at;
using lpp::testing::uid_of;

}  // namespace lpp::devcluster

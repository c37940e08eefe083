// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "devcluster/apiserver/quantities.h"

namespace lpp::devcluster {
namespace {

TEST_CASE("quantities are stored in canonical form") {
  struct Row {
    const char* given;
    const char* stored;
  };
  for (const Row& row : {
           Row{"1024Mi", "1Gi"},
           Row{"1000Mi", "1000Mi"},
           Row{"1.5Gi", "1536Mi"},
           Row{"0.5Gi", "512Mi"},
           Row{"1Gi", "1Gi"},
           Row{"1048576", "1048576"},
           Row{"1024Ki", "1Mi"},
           Row{"0.125Ki", "128"},
           Row{"2048Ei", "2048Ei"},
           Row{"1000M", "1G"},
           Row{"0.5", "500m"},
           Row{"1500m", "1500m"},
           Row{"2000m", "2"},
           Row{"100", "100"},
           Row{"1000", "1k"},
           Row{"1000000001", "1000000001"},
           Row{"1000E", "1000E"},
           Row{"0", "0"},
           Row{"0Gi", "0"},
           Row{"01Gi", "1Gi"},
           Row{"1.", "1"},
           Row{".5", "500m"},
           Row{"1e9", "1e9"},
           Row{"nonsense", "nonsense"},
           Row{"", ""},
           Row{"12345678901234567890", "12345678901234567890"},
       }) {
    CAPTURE(row.given);
    CHECK(canonical_quantity(row.given) == row.stored);
  }
}

TEST_CASE("a resource list may hold numbers") {
  Json list = {{"storage", "1024Mi"}, {"cpu", 0.5}, {"memory", 1024}};
  canonicalize_quantities(list);
  CHECK(list == Json({{"storage", "1Gi"}, {"cpu", "500m"}, {"memory", "1024"}}));
  Json none;
  canonicalize_quantities(none);
  CHECK(none.is_null());
}

}  // namespace
}  // namespace lpp::devcluster

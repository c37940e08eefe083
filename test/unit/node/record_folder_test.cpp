// SPDX-License-Identifier: Apache-2.0
#include "node/record_folder.h"

#include <doctest/doctest.h>

#include "node_bed.h"

using namespace lpp;
using namespace lpp::node;
using namespace lpp::testing;

TEST_CASE(
    "what stands in the records' folder is known by its name, and what has none is passed over") {
  const BaseFolder base;
  Kernel kernel;
  const UniqueFd folder(kernel.open(base.path().c_str(), O_RDONLY | O_DIRECTORY));
  const auto records = RecordFolder::find_or_make(kernel, folder.get());
  REQUIRE(records.ok());
  // Ids are of letters, digits and these.
  const std::vector<std::string> ids{"a", "a.b", "json", "pvc-1", "web_pvc-1.json"};
  for (const std::string& id : ids) {
    base.write(BaseFolder::record(RecordFolder::record_name(id)));
    base.write(BaseFolder::record(RecordFolder::new_name(id) + "/file"));
    base.write(BaseFolder::record(RecordFolder::gone_name(id) + "/volume/file"));
    base.write(BaseFolder::record(RecordFolder::work_name(id, "0a1b")));
  }
  for (const char* const name :
       {"lock", "spare", "identity.json", "identity.write", "write.a", "work-write.0a1b",
        "volume.a", "volume.json", "work.a", "work.json", "older.a.json", ".json", "a"}) {
    base.write(BaseFolder::record(name));
  }
  const auto names = records->names();
  REQUIRE(names.ok());
  CHECK(names->records == ids);
  CHECK(names->being_made == ids);
  CHECK(names->being_removed == ids);
  CHECK(names->works == ids);
}

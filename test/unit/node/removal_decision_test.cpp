// SPDX-License-Identifier: Apache-2.0
// What becomes of a directory that is to be removed: the table of docs/decisions.md, and what must
// hold for whatever is found.

#include "node/removal_decision.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace lpp::node::removal_decision {

namespace {

using Rest = RemovalScene::Rest;
using Is = RemovalDecision;

const Identity kOfRecord{.inode = 10};
const Identity kOfAnother{.inode = 11};

enum class Record { kNone, kOurs, kOfNoClaim, kTakenForAny };
enum class Place { kNothing, kRecorded, kOther };

RemovalScene scene_of(Record record, Rest rest, Place place) {
  RemovalScene scene{.rest = rest};
  if (record != Record::kNone) {
    scene.recorded = Volume{.id = "v",
                            .path = "v",
                            .uid = record == Record::kOfNoClaim ? "" : "uid-1",
                            .taken_for_any = record == Record::kTakenForAny,
                            .directory = kOfRecord};
  }
  if (place != Place::kNothing) scene.place = place == Place::kRecorded ? kOfRecord : kOfAnother;
  return scene;
}

struct Row {
  const char* what;
  Record record;
  Rest rest;
  Place place;
  const char* uid;
  Is decision;
};

/// Calls it with each scene, and the claim that is known, or not.
void for_each_scene(const std::function<void(const RemovalScene&, const std::string&)>& check) {
  for (const Record record :
       {Record::kNone, Record::kOurs, Record::kOfNoClaim, Record::kTakenForAny}) {
    for (const Rest rest : {Rest::kNone, Rest::kEmpty, Rest::kData}) {
      for (const Place place : {Place::kNothing, Place::kRecorded, Place::kOther}) {
        for (const std::string uid : {"uid-1", ""}) {
          CAPTURE(static_cast<int>(record));
          CAPTURE(static_cast<int>(rest));
          CAPTURE(static_cast<int>(place));
          CAPTURE(uid);
          check(scene_of(record, rest, place), uid);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a released volume's directory goes where it is certain which one that is") {
  for (const Row& row : std::vector<Row>{
           {"on record and in its place", Record::kOurs, Rest::kNone, Place::kRecorded, "uid-1",
            Is::kWhole},
           {"so, and it was about to leave", Record::kOurs, Rest::kEmpty, Place::kRecorded, "uid-1",
            Is::kWhole},
           {"so, of any claim", Record::kOurs, Rest::kNone, Place::kRecorded, "", Is::kWhole},
           {"made by a script", Record::kNone, Rest::kNone, Place::kOther, "uid-1", Is::kWhole},
           {"so, and it was about to leave", Record::kNone, Rest::kEmpty, Place::kOther, "uid-1",
            Is::kWhole},
           {"made again by a script", Record::kOurs, Rest::kNone, Place::kOther, "uid-1",
            Is::kWhole},
           {"it has left its place", Record::kOurs, Rest::kData, Place::kNothing, "uid-1",
            Is::kRest},
           {"so, and something else stands there", Record::kOurs, Rest::kData, Place::kOther,
            "uid-1", Is::kRest},
           {"so, without a record", Record::kNone, Rest::kData, Place::kNothing, "uid-1",
            Is::kRest},
           {"so, and something else stands there", Record::kNone, Rest::kData, Place::kOther,
            "uid-1", Is::kRefuse},
           {"taken for a claim, and asked for any", Record::kOurs, Rest::kData, Place::kNothing, "",
            Is::kRefuse},
           {"taken for any, and asked for any", Record::kTakenForAny, Rest::kData, Place::kNothing,
            "", Is::kRest},
           {"taken for any, and something else stands there", Record::kTakenForAny, Rest::kData,
            Place::kOther, "", Is::kRefuse},
           {"of no claim, and something else stands there", Record::kOfNoClaim, Rest::kEmpty,
            Place::kOther, "uid-1", Is::kRefuse},
           {"only a record", Record::kOurs, Rest::kNone, Place::kNothing, "uid-1",
            Is::kNothingThere},
           {"nothing", Record::kNone, Rest::kNone, Place::kNothing, "uid-1", Is::kNothingThere},
       }) {
    CAPTURE(row.what);
    CHECK(decide_removal(scene_of(row.record, row.rest, row.place), Removal::kReleased, row.uid) ==
          row.decision);
  }
}

TEST_CASE("what is only taken back takes nothing along that somebody may have written") {
  for_each_scene([](const RemovalScene& scene, const std::string& uid) {
    for (const Removal removal : {Removal::kTakeBack, Removal::kIfEmpty}) {
      const Is decision = decide_removal(scene, removal, uid);
      CHECK((decision == Is::kKeep) == (scene.rest == Rest::kData));
      CHECK((decision == Is::kKeep || decision == Is::kOnlyIfEmpty || decision == Is::kForget));
      if (decision == Is::kForget) {
        CHECK(removal == Removal::kTakeBack);
        CHECK(scene.place.has_value());
        CHECK_FALSE(scene.is_in_place());
      }
    }
  });
  RemovalScene found = scene_of(Record::kOurs, Rest::kNone, Place::kRecorded);
  CHECK(decide_removal(found, Removal::kTakeBack, "uid-1") == Is::kOnlyIfEmpty);
  found.recorded->origin = Origin::kFound;
  CHECK(decide_removal(found, Removal::kTakeBack, "uid-1") == Is::kForget);
}

TEST_CASE("beside what a removal has taken away only the directory on record goes, too") {
  for_each_scene([](const RemovalScene& scene, const std::string& uid) {
    const Is decision = decide_removal(scene, Removal::kReleased, uid);
    if (scene.rest == Rest::kData && decision == Is::kWhole) CHECK(scene.is_in_place());
    if (decision == Is::kWhole) CHECK(scene.place.has_value());
    if (decision == Is::kRest) CHECK(scene.rest != Rest::kNone);
    if (decision == Is::kNothingThere) CHECK_FALSE(scene.place.has_value());
    CHECK(decision != Is::kKeep);
  });
}

TEST_CASE(
    "of data that was taken for a claim nothing goes while that is not known to be this one") {
  for_each_scene([](const RemovalScene& scene, const std::string& uid) {
    if (scene.rest != Rest::kData || !scene.recorded) return;
    const bool is_known = !uid.empty() || scene.recorded->uid.empty();
    if (is_known || scene.recorded->taken_for_any) return;
    CHECK(decide_removal(scene, Removal::kReleased, uid) == Is::kRefuse);
  });
}

TEST_CASE("before a directory leaves its place the record tells whose it is") {
  const RemoveRequest request{.id = "v", .path = "v", .uid = "uid-1"};
  const auto of_script =
      record_to_leave_with(scene_of(Record::kNone, Rest::kNone, Place::kOther), request);
  REQUIRE(of_script);
  CHECK(of_script->uid == "uid-1");
  CHECK(of_script->path == "v");
  CHECK(of_script->origin == Origin::kFound);
  CHECK(of_script->directory == kOfAnother);
  CHECK_FALSE(of_script->taken_for_any);

  CHECK_FALSE(
      record_to_leave_with(scene_of(Record::kOurs, Rest::kNone, Place::kRecorded), request));
  const auto replaced =
      record_to_leave_with(scene_of(Record::kOurs, Rest::kNone, Place::kOther), request);
  REQUIRE(replaced);
  CHECK(replaced->directory == kOfAnother);

  const auto of_no_claim =
      record_to_leave_with(scene_of(Record::kOfNoClaim, Rest::kNone, Place::kRecorded), request);
  REQUIRE(of_no_claim);
  CHECK(of_no_claim->uid == "uid-1");

  RemoveRequest of_any = request;
  of_any.uid.clear();
  const auto for_any =
      record_to_leave_with(scene_of(Record::kOurs, Rest::kNone, Place::kRecorded), of_any);
  REQUIRE(for_any);
  CHECK(for_any->taken_for_any);
  CHECK(for_any->uid == "uid-1");
  // Who knows the claim takes it for that one again.
  CHECK(record_to_leave_with(scene_of(Record::kTakenForAny, Rest::kNone, Place::kRecorded), request)
            ->taken_for_any == false);
}

}  // namespace lpp::node::removal_decision

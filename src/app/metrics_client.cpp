// SPDX-License-Identifier: Apache-2.0
#include "app/metric_family.h"
#include "app/metrics.h"

namespace lpp::app {

namespace {

using Family = MetricFamily;

/// client-go's.
void add_requests(std::string& out, const k8s::RequestStats& stats, const std::string& host) {
  const Family::Labels constant{{"host", host}};
  out += Family::counter("rest_client_requests_total",
                         "Number of HTTP requests, partitioned by status code, method, and "
                         "host.")
             .add_all<Counter, 2>({"code", "method"}, stats.requests, constant)
             .text();
  out += Family::histogram("rest_client_request_duration_seconds",
                           "Request latency in seconds. Broken down by verb, and host.")
             .add_all<Histogram, 1>({"verb"}, stats.latency, constant)
             .text();
}

void add_caches(std::string& out, const std::vector<CacheSubject>& caches, TimePoint now) {
  auto lists =
      Family::counter("reflector_lists_total", "Total number of API lists done by the reflectors");
  auto watches = Family::counter("reflector_watches_total",
                                 "Total number of API watches done by the reflectors");
  auto events = Family::counter("local_path_provisioner_reflector_events_total",
                                "Changes of objects that watches brought.");
  auto failures = Family::counter("local_path_provisioner_reflector_failures_total",
                                  "Lists and watches that failed.");
  auto lag = Family::gauge("local_path_provisioner_reflector_lag_seconds",
                           "Seconds since the API server was last heard: a list, a change or a "
                           "bookmark. A quiet watch brings a bookmark about once a minute.");
  auto synced = Family::gauge("local_path_provisioner_cache_synced",
                              "1 once the first list has been taken in.");
  auto objects = Family::gauge("local_path_provisioner_cache_objects", "Objects in the cache.");
  for (const CacheSubject& cache : caches) {
    const Family::Labels labels{{"name", cache.resource}};
    const k8s::ReflectorStats& stats = *cache.stats;
    lists.add(labels, static_cast<double>(stats.lists.load()));
    watches.add(labels, static_cast<double>(stats.watches.load()));
    events.add(labels, static_cast<double>(stats.events.load()));
    failures.add(labels, static_cast<double>(stats.failures.load()));
    if (const TimePoint heard = stats.last_contact; heard != TimePoint::min()) {
      lag.add(labels, std::chrono::duration<double>(now - heard).count());
    }
    synced.add(labels, cache.has_synced() ? 1 : 0);
    objects.add(labels, static_cast<double>(cache.size()));
  }
  for (Family* family : {&lists, &watches, &events, &failures, &lag, &synced, &objects}) {
    out += family->text();
  }
}

}  // namespace

std::string client_metrics(const Subjects& subjects) {
  std::string out;
  add_requests(out, subjects.requests, subjects.api_host);
  add_caches(out, subjects.caches, subjects.clock.now());
  out += Family::counter("local_path_provisioner_events_dropped_total",
                         "Kubernetes Events that were not stored: too many, or refused.")
             .add({}, static_cast<double>(subjects.events.dropped()))
             .text();
  return out;
}

}  // namespace lpp::app

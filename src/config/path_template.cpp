// SPDX-License-Identifier: Apache-2.0
#include "config/path_template.h"

#include "config/claim_data.h"

namespace lpp::config {

Result<PathTemplate> PathTemplate::parse(std::string_view text, std::string_view name) {
  auto parsed = gotemplate::Template::parse(text, name);
  if (!parsed.ok()) return std::move(parsed).error();
  return PathTemplate(*std::move(parsed));
}

Result<std::string> PathTemplate::render(std::string_view pv_name,
                                         const k8s::ObjectMeta& claim) const {
  return template_.render(ClaimData(pv_name, claim));
}

}  // namespace lpp::config

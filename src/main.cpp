#include <stop_token>
#include <thread>
#include <variant>

#include "app/app.h"
#include "app/options.h"
#include "app/signals.h"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace lpp::app;  // NOLINT(google-build-using-namespace): main is all about it

  const Invocation invocation = parse_command_line(argc, argv);
  if (const auto* print = std::get_if<PrintAndExit>(&invocation)) {
    std::fputs(print->text.c_str(), print->exit_code == 0 ? stdout : stderr);
    return print->exit_code;
  }

  block_signals();  // before any thread starts: they inherit it
  App app(std::get<Options>(invocation));
  std::stop_source stop;
  std::stop_source ended;
  int exit_code = 0;
  std::thread runner([&] {
    exit_code = app.run(stop.get_token());
    ended.request_stop();
  });
  wait_for_signal(ended.get_token());
  stop.request_stop();
  runner.join();
  return exit_code;
}

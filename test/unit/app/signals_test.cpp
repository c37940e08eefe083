// SPDX-License-Identifier: Apache-2.0
#include "app/signals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <thread>

using namespace lpp::app;

namespace {

/// Runs the body in a child process, so that its signals are its own; the exit code, or the
/// signal's number + 128 that ended it.
int in_child(const std::function<int()>& body) {
  std::fflush(stdout);  // or the child could print it again
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    // The test framework's handlers would report the end of the child as a failure of its own.
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
    _exit(body());
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) + 128;
}

}  // namespace

TEST_CASE("each stop signal ends the wait and is named") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    CHECK(in_child([&] {
            block_signals();
            kill(getpid(), signal);
            return wait_for_signal() == signal ? 0 : 99;
          }) == 0);
  }
}

TEST_CASE("the second signal ends the process at once with code 1") {
  for (const int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    CHECK(in_child([&] {
            block_signals();
            kill(getpid(), SIGTERM);
            wait_for_signal();
            kill(getpid(), signal);
            pause();
            return 99;
          }) == 1);
  }
}

TEST_CASE("an ignored hang-up stays ignored") {
  CHECK(in_child([] {
          std::signal(SIGHUP, SIG_IGN);
          block_signals();
          kill(getpid(), SIGHUP);
          kill(getpid(), SIGTERM);
          return wait_for_signal() == SIGTERM ? 0 : 99;
        }) == 0);
}

TEST_CASE("the wait ends without a signal when its stop token is triggered") {
  CHECK(in_child([] {
          block_signals();
          std::stop_source source;
          std::jthread stopper([&] { source.request_stop(); });
          return wait_for_signal(source.get_token()) == 0 ? 0 : 99;
        }) == 0);
  CHECK(in_child([] {
          block_signals();
          std::stop_source source;
          source.request_stop();
          return wait_for_signal(source.get_token()) == 0 ? 0 : 99;
        }) == 0);
}

TEST_CASE("a command ends by the signals that came while they were kept back, and by later ones") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    CHECK(in_child([&] {
            block_signals();
            kill(getpid(), signal);
            unblock_signals();
            return 99;
          }) == 128 + signal);
    CHECK(in_child([&] {
            block_signals();
            unblock_signals();
            kill(getpid(), signal);
            return 99;
          }) == 128 + signal);
  }
}

TEST_CASE("a command that is to stop goes on after the first signal, and ends by the second") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(signal);
    CHECK(in_child([&] {
            block_signals();
            kill(getpid(), signal);
            const std::stop_token stop = stop_on_signal();
            while (!stop.stop_requested()) std::this_thread::yield();
            return 42;
          }) == 42);
    CHECK(in_child([&] {
            block_signals();
            const std::stop_token stop = stop_on_signal();
            kill(getpid(), signal);
            while (!stop.stop_requested()) std::this_thread::yield();
            kill(getpid(), signal);
            pause();
            return 99;
          }) == 1);
  }
}

TEST_CASE("a closed pipe does not end the process") {
  CHECK(in_child([] {
          block_signals();
          int ends[2];
          if (pipe(ends) != 0) return 98;
          close(ends[0]);
          return write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 99;
        }) == 0);
}

TEST_CASE("SIGUSR2 is reported and does not end the wait, and never ends the process") {
  CHECK(in_child([] {
          block_signals();
          int reported = 0;
          const auto on_usr2 = [&] {
            if (++reported == 2) kill(getpid(), SIGTERM);
            if (reported == 1) kill(getpid(), SIGUSR2);
          };
          kill(getpid(), SIGUSR2);
          if (wait_for_signal({}, on_usr2) != SIGTERM) return 98;
          kill(getpid(), SIGUSR2);  // while it is shutting down
          return reported == 2 ? 0 : 99;
        }) == 0);
}

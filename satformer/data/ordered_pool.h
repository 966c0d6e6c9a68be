#pragma once
// Work that many threads share and one thread consumes in order.
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace satformer::data {

// Inputs pushed by the owner's thread are worked on by the pool's; results are consumed on the owner's thread in the
// order of the inputs, so that they do not depend on the number of threads. At most `max_in_flight` inputs or results
// exist at a time: push() consumes the oldest result to make room. An exception of the work comes out of push() or
// finish(); the destructor drops what has not been started and waits for the rest.
template <typename Input, typename Result>
class OrderedPool {
 public:
  // `worker` is copied for every thread, so that each may keep its own state.
  template <typename Worker>
  OrderedPool(int num_threads, std::size_t max_in_flight, Worker worker, std::function<void(Result)> consume)
      : max_in_flight_(max_in_flight), consume_(std::move(consume)) {
    try {
      for (int i = 0; i < num_threads; ++i) {
        // The copy is made on this thread. NOLINTNEXTLINE(bugprone-exception-escape)
        threads_.emplace_back([this, worker]() mutable { run(worker); });
      }
    } catch (...) {
      close();  // those that did start would wait for ever
      throw;
    }
  }
  ~OrderedPool() { close(); }
  OrderedPool(const OrderedPool&) = delete;
  OrderedPool& operator=(const OrderedPool&) = delete;

  void push(Input input) {
    while (results_.size() >= max_in_flight_) consume_oldest();
    Task task{std::move(input), {}};
    results_.push_back(task.result.get_future());
    {
      const std::scoped_lock lock(mutex_);
      waiting_.push_back(std::move(task));
    }
    wake_.notify_one();
  }

  void finish() {
    while (!results_.empty()) consume_oldest();
  }

 private:
  struct Task {
    Input input;
    std::promise<Result> result;
  };

  void close() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
      waiting_.clear();
    }
    wake_.notify_all();
  }

  void consume_oldest() {
    Result result = results_.front().get();
    results_.pop_front();
    consume_(std::move(result));
  }

  template <typename Worker>
  void run(Worker& worker) {
    while (true) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Task task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      try {
        task.result.set_value(worker(std::move(task.input)));
      } catch (...) {
        task.result.set_exception(std::current_exception());
      }
    }
  }

  std::size_t max_in_flight_;
  std::function<void(Result)> consume_;
  std::deque<std::future<Result>> results_;  // in the order of the inputs; the owner's thread only
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> waiting_;
  bool closed_ = false;
  std::vector<std::jthread> threads_;  // last: joined first
};

}  // namespace satformer::data

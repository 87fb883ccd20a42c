//! Who goes on, and with what?
//!
//! Futures of all processes on one thread. Whoever was woken first is asked first, so the same wakings
//! give the same order, always. A process that crashes loses its futures and nothing else notices.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// One life of one replica. A replica that starts again is another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId(u64);

#[derive(Default)]
pub struct Executor {
    tasks: BTreeMap<TaskId, Task>,
    ready: Arc<Ready>,
    next: u64,
}

struct Task {
    process: ProcessId,
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

/// Who was woken, in order, and nobody twice.
#[derive(Debug, Default)]
struct Ready {
    queue: Mutex<(VecDeque<TaskId>, BTreeSet<TaskId>)>,
}

impl Ready {
    fn push(&self, task: TaskId) {
        // One thread: nobody can have died while holding it.
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.1.insert(task) {
            queue.0.push_back(task);
        }
    }

    /// The first one that may go on.
    fn pop(&self, may: impl Fn(TaskId) -> bool) -> Option<TaskId> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let at = queue.0.iter().position(|it| may(*it))?;
        let task = queue.0.remove(at)?;
        queue.1.remove(&task);
        Some(task)
    }
}

struct Waking {
    task: TaskId,
    ready: Arc<Ready>,
}

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.task);
    }
}

impl Executor {
    pub fn spawn(
        &mut self,
        process: ProcessId,
        future: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        self.next += 1;
        let task = TaskId(self.next);
        let waker = Waker::from(Arc::new(Waking { task, ready: Arc::clone(&self.ready) }));
        self.tasks.insert(task, Task { process, future: Box::pin(future), waker });
        self.ready.push(task);
        task
    }

    /// Lets everybody go on who was woken and does not stand still. True if anybody did.
    pub fn run(&mut self, stands_still: impl Fn(ProcessId) -> bool) -> bool {
        let mut moved = false;
        loop {
            let tasks = &self.tasks;
            let may = |it: TaskId| tasks.get(&it).is_none_or(|it| !stands_still(it.process));
            let Some(id) = self.ready.pop(may) else { return moved };
            // It may have been dropped since it was woken.
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            moved = true;
            let waker = task.waker.clone();
            match task.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => {}
                Poll::Ready(()) => {
                    self.tasks.remove(&id);
                }
            }
        }
    }

    /// Gives up one answer.
    pub fn cancel(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    /// The process is gone.
    pub fn kill(&mut self, process: ProcessId) {
        self.tasks.retain(|_, it| it.process != process);
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Executor").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// For what cannot have to wait: every answer is there at once.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Waits until somebody says its number.
    fn waits(number: u8, said: &Rc<RefCell<Said>>) -> impl Future<Output = ()> + 'static {
        let said = Rc::clone(said);
        std::future::poll_fn(move |context| {
            let mut said = said.borrow_mut();
            if said.numbers.contains(&number) {
                said.heard.push(number);
                return Poll::Ready(());
            }
            said.wakers.push((number, context.waker().clone()));
            Poll::Pending
        })
    }

    #[derive(Default)]
    struct Said {
        numbers: BTreeSet<u8>,
        heard: Vec<u8>,
        wakers: Vec<(u8, Waker)>,
    }

    fn say(said: &Rc<RefCell<Said>>, number: u8) {
        let mut said = said.borrow_mut();
        said.numbers.insert(number);
        for (_, waker) in said.wakers.iter().filter(|(it, _)| *it == number) {
            waker.wake_by_ref();
            waker.wake_by_ref();
        }
    }

    #[test]
    fn whoever_is_woken_first_goes_on_first() {
        let said = Rc::default();
        let mut executor = Executor::default();
        for number in [1, 2, 3] {
            executor.spawn(ProcessId(0), waits(number, &said));
        }
        executor.run(|_| false);
        for number in [3, 1] {
            say(&said, number);
        }
        executor.run(|_| false);
        assert_eq!(said.borrow().heard, [3, 1]);
        assert!(!executor.run(|_| false), "nobody was woken");
    }

    #[test]
    fn a_process_that_stands_still_goes_on_where_it_was() {
        let said = Rc::default();
        let mut executor = Executor::default();
        executor.spawn(ProcessId(0), waits(1, &said));
        executor.spawn(ProcessId(1), waits(2, &said));
        executor.run(|_| false);
        for number in [1, 2] {
            say(&said, number);
        }
        executor.run(|it| it == ProcessId(0));
        assert_eq!(said.borrow().heard, [2]);
        executor.run(|_| false);
        assert_eq!(said.borrow().heard, [2, 1]);
    }

    #[test]
    fn the_futures_of_a_crashed_process_are_gone() {
        let said = Rc::default();
        let mut executor = Executor::default();
        executor.spawn(ProcessId(0), waits(1, &said));
        let given_up = executor.spawn(ProcessId(1), waits(2, &said));
        executor.run(|_| false);
        executor.kill(ProcessId(0));
        executor.cancel(given_up);
        for number in [1, 2] {
            say(&said, number);
        }
        executor.run(|_| false);
        assert!(said.borrow().heard.is_empty());
    }
}

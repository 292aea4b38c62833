//! Whether a transcript can be written, and what the host should know about that.

use std::io;

/// How writing goes: the first failure is news at once, and so is the end of failing.
#[derive(Debug, Default)]
pub(super) struct Health {
    failing: bool,
    news: Option<News>,
    guard: Guard,
}

/// Whether others are kept from writing there too.
#[derive(Debug, Default)]
enum Guard {
    #[default]
    Up,
    /// They are not, and the host does not know.
    Down(io::Error),
    /// They are not, and the host has been told once.
    Known,
}

/// What the host should know about a transcript.
#[derive(Debug)]
pub enum News {
    /// It cannot be written.
    Lost(io::Error),
    /// Somebody had taken it away, and it was written anew.
    Renewed,
    /// It cannot be locked, so others may write there too.
    Unguarded(io::Error),
    /// It could not be written, and is complete again.
    Complete,
    /// It could not be written, can be again, and lacks so many lines for good.
    Gap(usize),
}

impl Health {
    /// Notes how a write went, and how many lines were given up meanwhile.
    pub(super) fn note(&mut self, written: &io::Result<()>, given_up: usize) {
        match (written, self.failing) {
            (Err(error), false) => {
                self.failing = true;
                self.news = Some(News::Lost(same(error)));
            }
            (Ok(()), true) => {
                self.failing = false;
                self.news = match (given_up, &self.news) {
                    (0, None) => Some(News::Complete),
                    // A host that has not heard of the failure need not hear of its end.
                    (0, Some(_)) => None,
                    (count, _) => Some(News::Gap(count)),
                };
            }
            (Err(_), true) | (Ok(()), false) => {}
        }
    }

    /// It was taken away and written anew.
    pub(super) fn renew(&mut self) {
        self.failing = false;
        self.news = Some(News::Renewed);
    }

    /// It has become worse: the host hears of it though it knows of the failure.
    pub(super) fn worsen(&mut self, error: io::Error) {
        self.failing = true;
        self.news = Some(News::Lost(error));
    }

    /// It cannot be locked.
    pub(super) fn unguard(&mut self, error: io::Error) {
        if matches!(self.guard, Guard::Up) {
            self.guard = Guard::Down(error);
        }
    }

    /// What the host does not know yet.
    pub(super) fn take_news(&mut self) -> Option<News> {
        if let Some(news) = self.news.take() {
            return Some(news);
        }
        match std::mem::take(&mut self.guard) {
            Guard::Up => None,
            Guard::Down(error) => {
                self.guard = Guard::Known;
                Some(News::Unguarded(error))
            }
            Guard::Known => {
                self.guard = Guard::Known;
                None
            }
        }
    }
}

/// The same error once more.
fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

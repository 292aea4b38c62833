//! Prompts for the agent: one message, or a stream of them.

use std::fmt;

use futures::stream::{BoxStream, Stream, StreamExt};
use whimbrel_wire::content::{Block, Content};
use whimbrel_wire::message::User;

/// A prompt: one message from a string or content blocks, or a stream of messages.
pub struct Prompt {
    pub(crate) messages: Messages,
}

pub(crate) enum Messages {
    /// A single message.
    One(Box<User>),
    /// Messages that come over time.
    Many(BoxStream<'static, User>),
}

impl Prompt {
    /// Creates a prompt from messages that come over time. The input ends with the stream.
    pub fn stream(messages: impl Stream<Item = User> + Send + 'static) -> Self {
        Self { messages: Messages::Many(messages.boxed()) }
    }

    fn from_content(content: Content) -> Self {
        User::prompt(content).into()
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from_content(text.into())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::from_content(text.into())
    }
}

impl From<Vec<Block>> for Prompt {
    fn from(blocks: Vec<Block>) -> Self {
        Self::from_content(blocks.into())
    }
}

impl From<User> for Prompt {
    fn from(user: User) -> Self {
        Self { messages: Messages::One(Box::new(user)) }
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.messages {
            Messages::One(message) => f.debug_tuple("Prompt").field(message).finish(),
            Messages::Many(_) => f.debug_tuple("Prompt").field(&"a stream").finish(),
        }
    }
}

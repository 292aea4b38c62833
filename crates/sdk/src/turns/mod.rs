//! Prompts and what answers them: [`session`] (conversations), [`turn`] (one prompt and its answer), [`query`] (runs),
//! [`events`] (text and typed events), [`typed`] (values), [`shared_session`] (for several tasks). They make each other,
//! so they are one module.

pub(crate) mod events;
pub(crate) mod query;
pub(crate) mod session;
pub(crate) mod shared_session;
pub(crate) mod turn;
pub(crate) mod typed;

//! Variables: the values that a variable may hold at each point of a script, and how certain they are.

pub(crate) mod alternatives;
pub(crate) mod assign;
pub(crate) mod branches;
pub(crate) mod builtins;
pub(crate) mod certainty;
pub(crate) mod definite;
pub(crate) mod env;
pub(crate) mod fixpoint;
pub(crate) mod safe_assignment;

//! What the code that `#[tool]` and `#[tools]` generate names besides the public items. Not for direct use.

pub use serde;

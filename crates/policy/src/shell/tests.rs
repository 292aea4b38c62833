//! Commands and what is known of them.

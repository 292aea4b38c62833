//! The program is killed again and again, at any moment, and goes on each time with all that it had said and done.
//! `cargo xtask bench killed` does the same more often.

#![expect(clippy::unwrap_used, reason = "this is all tests")]

use whimbrel_testkit::Drill;

#[tokio::test]
async fn whatever_was_said_and_done_is_known_after_every_kill() {
    let borne = Drill::new(env!("CARGO_BIN_EXE_whimbrel")).kills(25).run(|_| {}).await.unwrap();
    assert_eq!(borne.kills, 25);
    assert!(borne.messages > 25 && borne.commands > 25, "too little happened: {borne:?}");
}

//! The host is asked about every call and allows it at once.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::bench::clock::{self, ms};
use crate::bench::engine::{Consent, Engine, Start};
use crate::bench::figures::{Figures, median};
use crate::bench::lab::Lab;
use crate::bench::run::Run;
use crate::bench::script::{Call, Script};

const CALLS: usize = 20;

pub(super) fn play(lab: &Lab, engine: &Engine) -> Result<Option<Figures>> {
    // Something that changes a file: a harmless command would not be asked about. A file that is emptied first would go to
    // the disk at once.
    lab.server.play(Script::repeat(CALLS, |number| Call::bash(&format!("echo {number} >> asked.txt"))));
    let mut run = Run::start(lab, engine, Start { consent: Consent::Asked, ..Start::default() })?;
    run.initialize()?;
    run.say("go")?;
    let mut questions = Vec::with_capacity(CALLS);
    loop {
        let line = run.line()?;
        if line.has(r#""subtype":"can_use_tool""#) {
            let question = line.json()?;
            let answer = json!({ "behavior": "allow", "updatedInput": question["request"]["input"] });
            let response =
                json!({ "subtype": "success", "request_id": question["request_id"], "response": answer });
            run.send(&json!({ "type": "control_response", "response": response }))?;
            questions.push((line.at, clock::now()));
        } else if line.is_result() {
            break;
        }
    }
    let used = run.finish()?;
    let steps = lab.server.steps();
    ensure!(
        questions.len() == CALLS && steps.len() == CALLS + 1,
        "{} questions, {} requests",
        questions.len(),
        steps.len()
    );
    let asked = |at: usize| ms(questions[at].0.saturating_duration_since(steps[at].answered));
    let done = |at: usize| ms(steps[at + 1].asked.saturating_duration_since(questions[at].1));
    Ok(Some(vec![
        ("reply to question, ms", median(&(0..CALLS).map(asked).collect::<Vec<_>>())),
        ("answer to next request, ms", median(&(0..CALLS).map(done).collect::<Vec<_>>())),
        ("CPU of 20 calls, ms", used.cpu),
    ]))
}

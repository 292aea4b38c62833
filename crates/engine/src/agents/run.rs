//! An agent on its errand, from its place in the queue to its report. It is a task of its own, so that the turn can go on
//! beside it at any time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use whimbrel_wire::content::Content;
use whimbrel_wire::hook::HookEvent;

use super::desk::Rested;
use super::places::Ticket;
use super::progress::Progress;
use super::raise::Role;
use super::recover::Recovered;
use super::report::together;
use super::sidecar::Sidecar;
use super::{Agents, Definition, Errand, Report, apart, hired, notices};
use crate::agent::Agent;
use crate::clock;
use crate::hooks::Scene;
use crate::inbox::{News, Post};
use crate::skills::desk;
use crate::tasks::{Capture, Entry};
use crate::tools::Call;
use crate::turn::{self, Ending};
use crate::verdict::End;
use crate::worktree::Worktree;

/// How long an agent that is told to stop may take to leave its conversation in order.
const WIND_UP: Duration = Duration::from_millis(1000);

/// An agent that is about to go.
pub(super) struct Run {
    pub(super) agents: Agents,
    pub(super) who: Who,
    pub(super) errand: Errand,
    pub(super) call: Call,
    pub(super) entry: Entry,
    pub(super) ticket: Ticket,
    pub(super) mailbox: mpsc::UnboundedReceiver<String>,
    /// The work tree that was made for it.
    pub(super) tree: Option<Worktree>,
}

/// Who goes.
pub(super) enum Who {
    /// A new agent of this kind.
    New(Box<Definition>),
    /// One that has been there before.
    Again(Box<Rested>),
    /// One that was there in an earlier run.
    Back(Box<Recovered>),
}

/// What is left when an agent has ended.
struct Ended {
    report: Report,
    rested: Option<Rested>,
}

impl Run {
    /// Does the errand and tells everybody.
    pub(super) async fn go(self, done: oneshot::Sender<Report>) {
        let Self { agents, who, errand, mut call, entry, ticket, mut mailbox, tree } = self;
        if let Some(tree) = &tree {
            call.workspace = Arc::new(call.workspace.apart(tree.clone()));
        }
        let goes_on = !matches!(who, Who::New(_));
        let place = entry.stop.run_until_cancelled(ticket.take()).await.flatten();
        let Ended { mut report, mut rested } = match &place {
            Some(_) => {
                let (agent, definition) = begin(&agents, who, &errand, &call, &entry).await;
                work(&agents, agent, definition, &errand, &entry, &mut mailbox).await
            }
            None => Ended { report: never_began(&entry), rested: None },
        };
        let home = &agents.home;
        if let Some(tree) = tree {
            rested.iter_mut().for_each(|rested| rested.tree = Some(tree.clone()));
            report.kept = apart::leave(tree, &call).await;
        }
        report.background = entry.seal();
        // What was reported there by one that goes on is not its word any more.
        if report.background || goes_on {
            write_output(&entry, &report.text());
        }
        notices::ended(&home.outbox, &call.tasks, &entry.facts, &report).await;
        // Only now: to the host, too, no more than may are ever at work.
        drop(place);
        if let Some(rested) = rested {
            home.desk.keep(entry.id(), rested);
        }
        // An agent that stopped it need not be told; what the host stopped is no reason for a turn.
        let post = match report.background && (!report.stopped || entry.was_stopped_by_host()) {
            true => {
                let news = News::of_task(notices::for_model(&entry.facts, &report));
                Post::News(Box::new(News { wakes: !report.stopped, ..news }))
            }
            false => Post::Quiet,
        };
        // Nobody may be listening any more.
        let _ = home.inbox.send(post);
        entry.end(report.status());
        let _ = done.send(report);
    }
}

/// The agent, told of its errand.
async fn begin(
    agents: &Agents,
    who: Who,
    errand: &Errand,
    call: &Call,
    entry: &Entry,
) -> (Agent, Definition) {
    match who {
        Who::New(definition) => {
            let mut agent = agents.raise(&definition, errand, call, entry, &Role::Subagent, None);
            let notes = announce(&agent, &definition, entry).await;
            agents.hire(&mut agent, &definition, &entry.stop).await;
            agents.load_skills(&mut agent, &definition).await;
            agents.open_notes(&mut agent, &definition).await;
            let words = match &errand.skill {
                Some(skill) => {
                    let tools = &agents.position.toolbox;
                    let words = desk::read_out(&mut agent, skill, tools, &entry.stop).await;
                    // Its errand is the skill for as long as it lives.
                    agent.bench.gate.rights.keep_denials();
                    words
                }
                None => errand.prompt.clone(),
            };
            agent.conversation.hear_errand(&Content::from(words.as_str())).await;
            let above = &agents.position;
            let about = Sidecar::of(&entry.facts, errand, above.depth + 1, above.agent_id.as_deref());
            about.write(&agents.home, entry.id(), agent.conversation.journal());
            if let Some(text) = &definition.reminder {
                agent.conversation.brief(&format!("<system-reminder>\n{text}\n</system-reminder>"));
            }
            turn::brief(&mut agent, &notes);
            (agent, *definition)
        }
        Who::Again(rested) => {
            let Rested { mut agent, definition, position, tree, .. } = *rested;
            if tree.is_some() {
                agent.bench.call.workspace.enter(call.workspace.entered());
            }
            let around = &mut Arc::make_mut(&mut agent.bench).call;
            around.agents = position.map(|position| agents.at(position));
            around.cancel = entry.stop.clone();
            agent.progress = Progress::of_task(entry.facts.clone());
            agent.conversation.answer_to(&call.id);
            let notes = announce(&agent, &definition, entry).await;
            agents.hire(&mut agent, &definition, &entry.stop).await;
            agent.conversation.hear_errand(&Content::from(errand.prompt.as_str())).await;
            turn::brief(&mut agent, &notes);
            (agent, definition)
        }
        Who::Back(back) => {
            let Recovered { definition, past, about, .. } = *back;
            let agents = agents.no_higher_than(about.spawn_depth);
            let mut agent = agents.raise(&definition, errand, call, entry, &Role::Subagent, Some(past));
            let notes = announce(&agent, &definition, entry).await;
            agents.hire(&mut agent, &definition, &entry.stop).await;
            let words = match about.deny_again(&agent.bench.gate.rights) {
                Ok(()) => errand.prompt.clone(),
                Err(why) => format!("You cannot go on, and should say so: {why}"),
            };
            agent.conversation.hear_errand(&Content::from(words.as_str())).await;
            turn::brief(&mut agent, &notes);
            (agent, definition)
        }
    }
}

/// Tells the hooks that an agent begins, for the first time or again, and gives what they want it to know.
pub(super) async fn announce(agent: &Agent, definition: &Definition, entry: &Entry) -> Vec<String> {
    let told = |scene: &Scene| scene.subagent_start(entry.id(), &definition.name);
    let lookout = &agent.bench.gate.lookout;
    lookout.raise(HookEvent::SubagentStart, told, &entry.stop).await.contexts
}

/// Runs turns until nothing is left to do.
async fn work(
    agents: &Agents,
    mut agent: Agent,
    definition: Definition,
    errand: &Errand,
    entry: &Entry,
    mailbox: &mut mpsc::UnboundedReceiver<String>,
) -> Ended {
    let began = clock::monotonic();
    let mut said = Vec::new();
    let ending = loop {
        let ending = one_turn(&mut agent, entry).await;
        if ending.end != End::Done || entry.stop.is_cancelled() {
            break ending;
        }
        match agents.home.desk.next_or_close(entry.id(), mailbox) {
            Some(letter) => {
                said.push(ending.text);
                agent.conversation.hear_errand(&Content::from(letter.as_str())).await;
            }
            None => break ending,
        }
    };
    // Who cannot go on takes no more messages; those that came too late are told of.
    mailbox.close();
    let unread = std::iter::from_fn(|| mailbox.try_recv().ok()).count();
    hired::dismiss(&agent, &entry.stop).await;
    let stopped = entry.stop.is_cancelled() && ending.end != End::Broke;
    if ending.end == End::Broke {
        agent.bench.call.tasks.stop_owned(entry.id());
    }
    let ending = match ending.end {
        End::Done => Ending { text: together(&said, &ending.text), ..ending },
        _ => ending,
    };
    // Who has said nothing since its last message came has said that before.
    let since =
        Some(agent.progress.last_text()).filter(|text| said.last().is_none_or(|before| before != text));
    let report = Report {
        agent_id: entry.id().to_owned(),
        partial: together(&said, since.unwrap_or_default()),
        model: agent.model(),
        usage: agent.ledger.own(),
        dollars: agent.ledger.own_dollars(),
        task_usage: agent.task_usage(),
        took: clock::monotonic() - began,
        background: false,
        stopped,
        kept: None,
        unread,
        ending,
    };
    let position = Arc::make_mut(&mut agent.bench).call.agents.take().map(|agents| agents.position);
    let parent = agents.position.agent_id.clone();
    let description = errand.description.clone();
    let rested = Rested { agent, position, definition, description, parent, tree: None };
    Ended { report, rested: Some(rested) }
}

/// One turn; who does not leave in time when told to stop is cut off. Once nothing is left to spend, nobody goes on, also
/// not with something that costs nothing.
pub(super) async fn one_turn(agent: &mut Agent, entry: &Entry) -> Ending {
    let ledger = agent.ledger.clone();
    let too_late = async {
        tokio::select! {
            () = entry.stop.cancelled() => {}
            () = ledger.ran_out() => entry.stop.cancel(),
        }
        tokio::time::sleep(WIND_UP).await;
    };
    let ending = tokio::select! {
        biased;
        ending = turn::run(agent, &entry.stop) => ending,
        () = too_late => Ending::new(End::AbortedStreaming),
    };
    // What a skill has lent counts for its turn, also for one that was cut off.
    agent.bench.gate.rights.take_back();
    agent.knobs.take_back();
    match ending.end {
        End::AbortedStreaming | End::AbortedTools if ledger.is_used_up() => {
            Ending { end: End::Broke, ..ending }
        }
        _ => ending,
    }
}

/// The report of an agent that was stopped while it waited for its place.
fn never_began(entry: &Entry) -> Report {
    Report {
        agent_id: entry.id().to_owned(),
        ending: Ending::new(End::AbortedStreaming),
        partial: String::new(),
        model: String::new(),
        usage: whimbrel_wire::Usage::default(),
        dollars: 0.0,
        task_usage: whimbrel_wire::system::TaskUsage::default(),
        took: Duration::ZERO,
        background: false,
        stopped: true,
        kept: None,
        unread: 0,
    }
}

/// Puts a report where `TaskOutput` and the main agent find it.
pub(super) fn write_output(entry: &Entry, text: &str) {
    // What cannot be written is in the news all the same.
    if let Ok(mut capture) = Capture::in_file(entry.facts.output_file.clone()) {
        capture.take(text.as_bytes());
        capture.finish();
    }
}

//! A layer around the models: what the model reads and writes has Kimi's names and shapes of tools, what the engine reads
//! has its own. Requests are translated before they are sent, calls of tools as the reply streams.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;
use tokio::sync::mpsc;
use whimbrel::model::{
    BlockDelta, History, HistorySnapshot, Model, ModelError, OptionalPart, ReplyEvent, ReplyItem, Request,
    RequestPrefix, ToolSpec,
};
use whimbrel::wire::content::Block;

use crate::tool_names::ToolNames;
use crate::tools::{self, Offer};

/// Sentences of the engine's own system prompt that name tools, and the same with Kimi's names.
const PROMPT_SENTENCES: [(&str, &str); 2] = [
    (
        "Read for files, Edit and Write to change them",
        "ReadFile for files, StrReplaceFile and WriteFile to change them",
    ),
    ("Use Bash for everything else", "Use Shell for everything else"),
];

/// A piece of the arguments of a call in the model's own words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArgumentPiece {
    pub(crate) call: String,
    pub(crate) text: String,
}

pub(crate) type ArgumentSender = mpsc::UnboundedSender<ArgumentPiece>;

/// A model whose tools have Kimi's names.
pub(crate) struct KimiModel {
    model: Arc<dyn Model>,
    arguments: ArgumentSender,
    /// The last translated prefix: it is the same in most requests of a session.
    prefix: Mutex<Option<TranslatedPrefix>>,
}

#[derive(Clone)]
struct TranslatedPrefix {
    source: Arc<RequestPrefix>,
    prefix: Arc<RequestPrefix>,
    names: Arc<ToolNames>,
}

impl KimiModel {
    pub(crate) fn new(model: Arc<dyn Model>, arguments: ArgumentSender) -> Self {
        Self { model, arguments, prefix: Mutex::default() }
    }

    fn translate_prefix(&self, source: &Arc<RequestPrefix>) -> TranslatedPrefix {
        let mut last = self.prefix.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| Arc::ptr_eq(&known.source, source)) {
            return known.clone();
        }
        let names = ToolNames::new(source.tools.iter().map(|tool| tool.name.as_str()));
        let specs = source.tools.iter().filter_map(|tool| translate_spec(tool, &names)).collect();
        let system = source.system.iter().map(|text| translate_prompt(text)).collect();
        let prefix = Arc::new(RequestPrefix::new(system, specs));
        let translated = TranslatedPrefix { source: Arc::clone(source), prefix, names: Arc::new(names) };
        *last = Some(translated.clone());
        translated
    }
}

impl Model for KimiModel {
    fn stream_reply(&self, request: Arc<Request>) -> BoxStream<'static, Result<ReplyItem, ModelError>> {
        // Requests with tools of the provider are searches of the engine, without conversation.
        if !request.prefix.server_tools.is_empty() {
            return self.model.stream_reply(request);
        }
        let TranslatedPrefix { prefix, names, .. } = self.translate_prefix(&request.prefix);
        let history = translate_history(&request.history, &names);
        let translator = ReplyTranslator {
            names,
            arguments: self.arguments.clone(),
            has_raw: request.raw_events,
            open: HashMap::new(),
        };
        let request = Request { prefix, history, ..Request::clone(&request) };
        let reply = self.model.stream_reply(Arc::new(request));
        let state = (reply, translator, VecDeque::new());
        stream::unfold(state, |(mut reply, mut translator, mut ready)| async move {
            loop {
                if let Some(item) = ready.pop_front() {
                    return Some((Ok(item), (reply, translator, ready)));
                }
                match reply.next().await? {
                    Ok(item) => ready.extend(translator.translate(item)),
                    Err(error) => return Some((Err(error), (reply, translator, ready))),
                }
            }
        })
        .boxed()
    }

    fn mark_unsupported(&self, model: &str, part: &OptionalPart) {
        self.model.mark_unsupported(model, part);
    }
}

fn translate_prompt(text: &str) -> String {
    PROMPT_SENTENCES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// A tool as the model is offered it; `None` if this wire does not have it.
fn translate_spec(spec: &Arc<ToolSpec>, names: &ToolNames) -> Option<Arc<ToolSpec>> {
    match tools::offer(&spec.name) {
        Offer::Hidden => None,
        Offer::Renamed(tool) => Some(Arc::new(ToolSpec {
            name: tool.name.into(),
            description: tool.description.into(),
            input_schema: tool.input_schema.clone(),
        })),
        Offer::Same => match names.to_short(&spec.name) {
            short if short == spec.name => Some(Arc::clone(spec)),
            short => Some(Arc::new(ToolSpec { name: short.into(), ..ToolSpec::clone(spec) })),
        },
    }
}

/// The conversation with Kimi's names and shapes.
fn translate_history(history: &HistorySnapshot, names: &ToolNames) -> HistorySnapshot {
    let mut translated = History::new();
    for message in history.messages() {
        for block in &message.content {
            match block {
                Block::ToolUse { id, name, input } => {
                    let (name, input) = to_kimi(name, input, names);
                    translated.push(message.role, &Block::ToolUse { id: id.clone(), name, input });
                }
                other => translated.push(message.role, other),
            }
        }
    }
    translated.snapshot()
}

/// A call as the client and the model see it.
fn to_kimi(engine_name: &str, input: &Value, names: &ToolNames) -> (String, Value) {
    match names.to_short(engine_name) {
        short if short == engine_name => {
            let (name, input) = tools::to_kimi(engine_name, input);
            (name.to_owned(), input)
        }
        short => (short.to_owned(), input.clone()),
    }
}

/// Translates the calls of one reply.
struct ReplyTranslator {
    names: Arc<ToolNames>,
    arguments: ArgumentSender,
    has_raw: bool,
    /// Calls whose input is not complete, by the position of their block.
    open: HashMap<usize, OpenCall>,
}

struct OpenCall {
    id: String,
    /// Kimi's name of the tool.
    name: String,
    input: String,
}

impl ReplyTranslator {
    fn translate(&mut self, item: ReplyItem) -> Vec<ReplyItem> {
        match item.event {
            ReplyEvent::BlockStart { index, block: Block::ToolUse { id, name, input } } => {
                let engine_name = match self.names.to_full(&name) {
                    Some(full) => full.to_owned(),
                    None => tools::engine_name(&name).to_owned(),
                };
                self.open.insert(index, OpenCall { id: id.clone(), name, input: String::new() });
                let block = Block::ToolUse { id, name: engine_name, input };
                vec![self.item(ReplyEvent::BlockStart { index, block })]
            }
            ReplyEvent::BlockDelta { index, delta: BlockDelta::InputJson { partial_json } }
                if self.open.contains_key(&index) =>
            {
                if let Some(call) = self.open.get_mut(&index) {
                    call.input.push_str(&partial_json);
                    let piece = ArgumentPiece { call: call.id.clone(), text: partial_json };
                    // Without a session nothing shows it.
                    let _ = self.arguments.send(piece);
                }
                Vec::new()
            }
            ReplyEvent::BlockStop { index } => {
                let input = self.open.remove(&index).map(|call| self.input_event(index, &call));
                let stop = self.item(ReplyEvent::BlockStop { index });
                input.into_iter().chain([stop]).collect()
            }
            _ => vec![item],
        }
    }

    /// The whole input of a call in the engine's shape. Text that is not JSON is passed on: the engine tells the model.
    fn input_event(&self, index: usize, call: &OpenCall) -> ReplyItem {
        let text = match serde_json::from_str::<Value>(&call.input) {
            Ok(input) if self.names.to_full(&call.name).is_none() => {
                tools::to_engine(&call.name, input).1.to_string()
            }
            Ok(_) | Err(_) => call.input.clone(),
        };
        let delta = BlockDelta::InputJson { partial_json: text };
        self.item(ReplyEvent::BlockDelta { index, delta })
    }

    fn item(&self, event: ReplyEvent) -> ReplyItem {
        let raw = if self.has_raw { event.to_raw_json() } else { None };
        ReplyItem { event, raw }
    }
}

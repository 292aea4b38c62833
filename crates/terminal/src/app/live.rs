//! The live area: what runs, what waits, a question or a list, the input line, the status line.

use std::time::Duration;

use tokio::time::Instant;

use super::App;
use crate::conversation::{AgentState, InterruptState, Phase, Subagent, TodoStatus, Turn};
use crate::editor::layout::Layout;
use crate::menu::Menu;
use crate::present::Presenter;
use crate::prompts::{Prompt, RequestPlace};
use crate::screen::Live;
use crate::text::{Line, Style};
use crate::theme::Theme;
use crate::tool_card;

/// Rows of the input line at most.
const MAX_INPUT_ROWS: usize = 10;
/// Rows of the list of tasks.
const MAX_TODO_ROWS: usize = 6;
/// Rows below a request that may be needed later: a draft, the number of requests that wait, the user's own words.
const SPARE_ROWS: usize = 3;

/// Lines, and the place of the caret among them.
#[derive(Default)]
struct Area {
    lines: Vec<Line>,
    caret: Option<(usize, usize)>,
}

impl Area {
    /// Adds lines with a caret of their own.
    fn add(&mut self, lines: Vec<Line>, caret: Option<(usize, usize)>) {
        if let Some((row, column)) = caret {
            self.caret = Some((self.lines.len() + row, column));
        }
        self.lines.extend(lines);
    }
}

impl App {
    /// Builds the live area, or the whole screen of the pager.
    pub(crate) fn live(&mut self, presenter: &Presenter, now: Instant) -> Live {
        let (columns, rows) = (usize::from(self.size.columns), usize::from(self.size.rows));
        let theme = *presenter.theme();
        if self.pager.is_some() {
            return self.pager_screen(presenter, (columns, rows));
        }
        let mut area = Area::default();
        area.add(presenter.tail(columns), None);
        area.add(self.running_calls(presenter, columns, now), None);
        area.add(self.shell_rows(columns, now, &theme), None);
        area.add(self.agent_rows(columns, now, &theme), None);
        area.add(self.turn_row(columns, now, &theme), None);
        area.add(self.todo_rows(columns, &theme), None);
        area.add(self.queue_rows(columns, &theme), None);
        if !area.lines.is_empty() {
            area.lines.push(Line::empty());
        }
        match (self.prompts.front(), &self.picker) {
            (Some(prompt), _) => self.add_prompt(prompt, presenter, &mut area),
            (None, Some(picker)) => {
                let max = rows.saturating_sub(8).max(3);
                add_menu(&picker.menu, (columns, max), &theme, &mut area);
            }
            (None, None) => self.add_input(columns, rows, &theme, &mut area),
        }
        area.lines.push(self.status_line(columns, now, &theme));
        Live { lines: area.lines, cursor: area.caret }
    }

    fn pager_screen(&mut self, presenter: &Presenter, (columns, rows): (usize, usize)) -> Live {
        let count = self.conversation.agents.len();
        let Some(pager) = &mut self.pager else { return Live::default() };
        pager.limit_agents(count);
        let agent = pager.agent().map(|index| &self.conversation.agents[index]);
        let (transcript, title) = match agent {
            None => (&self.conversation.transcript, "transcript".into()),
            Some(agent) => (&agent.transcript, format!("{}: {}", agent.definition, agent.description)),
        };
        pager.load(transcript.version(), columns, || presenter.pages(transcript.items(), columns));
        let (lines, cursor) = pager.render(&title, (columns, rows), presenter.theme());
        Live { lines, cursor }
    }

    fn running_calls(&self, presenter: &Presenter, columns: usize, now: Instant) -> Vec<Line> {
        let calls = self.conversation.calls.iter();
        // A subagent has a row of its own.
        let shown =
            calls.filter(|call| !self.conversation.agents.iter().any(|agent| agent.call_id == call.id));
        shown
            .flat_map(|call| {
                let elapsed = now.saturating_duration_since(call.started);
                presenter.running_call(&call.name, &call.input, elapsed, &call.live_lines(), columns)
            })
            .collect()
    }

    fn shell_rows(&self, columns: usize, now: Instant, theme: &Theme) -> Vec<Line> {
        let Some(shell) = &self.shell else { return Vec::new() };
        let elapsed = now.saturating_duration_since(shell.started);
        let title = Line::styled(&format!("{} ", tool_card::spinner_frame(elapsed)), theme.accent)
            .with(&format!("! {}", shell.command), theme.user)
            .with(&format!(" {} s · Esc stops", elapsed.as_secs()), theme.dim);
        let output: Vec<&str> = shell.output.lines().collect();
        let last = &output[output.len().saturating_sub(5)..];
        let rows = last.iter().map(|line| Line::styled(&format!("  {line}"), theme.dim).truncated(columns));
        std::iter::once(title.truncated(columns)).chain(rows).collect()
    }

    fn agent_rows(&self, columns: usize, now: Instant, theme: &Theme) -> Vec<Line> {
        self.conversation
            .running_agents()
            .map(|agent| agent_row(agent, now, theme).truncated(columns))
            .collect()
    }

    fn turn_row(&self, columns: usize, now: Instant, theme: &Theme) -> Vec<Line> {
        let Some(turn) = &self.conversation.turn else { return Vec::new() };
        let elapsed = now.saturating_duration_since(turn.started);
        let verb = describe_phase(turn, !self.conversation.calls.is_empty(), !self.prompts.is_empty());
        let mut text = format!(" {} s", elapsed.as_secs());
        let tokens = turn.written_bytes / 4;
        if tokens > 0 {
            text += &format!(" · {} tokens", short_number(tokens));
        }
        if turn.interrupt == InterruptState::None && self.prompts.is_empty() {
            text += " · esc to interrupt";
        }
        let spinner = tool_card::spinner_frame(elapsed);
        let row = Line::styled(&format!("{spinner} {verb}"), theme.accent).with(&text, theme.dim);
        vec![row.truncated(columns)]
    }

    fn todo_rows(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        if !self.conversation.has_open_todos() {
            return Vec::new();
        }
        let todos = &self.conversation.todos;
        let done = todos.iter().filter(|todo| todo.status == TodoStatus::Completed).count();
        if self.are_tasks_folded {
            return vec![Line::styled(
                &format!("  tasks: {done} of {} done (Ctrl+T shows them)", todos.len()),
                theme.dim,
            )];
        }
        let first_open = todos.iter().position(|todo| todo.status != TodoStatus::Completed).unwrap_or(0);
        let first = first_open.saturating_sub(1).min(todos.len().saturating_sub(MAX_TODO_ROWS));
        let rows = todos.iter().skip(first).take(MAX_TODO_ROWS);
        let mut lines: Vec<Line> = rows
            .map(|todo| {
                let (mark, style) = match todo.status {
                    TodoStatus::Completed => ("  [x] ", theme.dim),
                    TodoStatus::InProgress => ("  [>] ", theme.strong),
                    TodoStatus::Pending => ("  [ ] ", Style::default()),
                };
                Line::styled(mark, theme.dim).with(&todo.text, style).truncated(columns)
            })
            .collect();
        let hidden = todos.len() - lines.len();
        if hidden > 0
            && let Some(last) = lines.last_mut()
        {
            *last =
                Line::styled(&format!("  … {} more, {done} of {} done", hidden + 1, todos.len()), theme.dim);
        }
        lines
    }

    fn queue_rows(&self, columns: usize, theme: &Theme) -> Vec<Line> {
        let steered = self.queue.steered.iter().map(|prompt| ("handed over: ", prompt.text.as_str()));
        let waiting = self.queue.waiting().iter().map(|prompt| ("queued: ", prompt.text.as_str()));
        steered
            .chain(waiting)
            .map(|(label, text)| {
                let first = text.lines().next().unwrap_or_default();
                Line::styled(&format!("  {label}"), theme.dim).with(first, theme.user).truncated(columns)
            })
            .collect()
    }

    /// Returns whether the live area has room for the whole request of a prompt.
    pub(crate) fn has_room_for(&self, prompt: &Prompt, presenter: &Presenter) -> bool {
        let columns = usize::from(self.size.columns);
        let request: usize =
            request_lines(prompt, presenter).iter().map(|line| line.wrapped(columns).len()).sum();
        let mut choices = Area::default();
        self.add_choices(prompt, presenter, &mut choices);
        // An empty line stands above, the status line below.
        request + choices.lines.len() + 2 + SPARE_ROWS <= usize::from(self.size.rows)
    }

    fn add_prompt(&self, prompt: &Prompt, presenter: &Presenter, area: &mut Area) {
        let columns = usize::from(self.size.columns);
        if prompt.place == RequestPlace::LiveArea {
            let request = request_lines(prompt, presenter);
            area.add(request.iter().flat_map(|line| line.wrapped(columns)).collect(), None);
        }
        self.add_choices(prompt, presenter, area);
    }

    /// Adds what is below the request of a prompt.
    fn add_choices(&self, prompt: &Prompt, presenter: &Presenter, area: &mut Area) {
        let (columns, rows) = (usize::from(self.size.columns), usize::from(self.size.rows));
        let theme = presenter.theme();
        if let Some(questions) = prompt.questions() {
            let tabs: Vec<_> = questions.tabs().collect();
            if tabs.len() > 1 {
                let mut line = Line::empty();
                for (header, is_open, is_answered) in tabs {
                    let mark = if is_answered { "✓" } else { " " };
                    let style = if is_open { theme.selected } else { theme.dim };
                    line.push(&format!("[{mark} {header}] "), style);
                }
                area.lines.push(line.truncated(columns));
            }
        }
        add_menu(prompt.menu(), (columns, rows.saturating_sub(6).max(3)), theme, area);
        let waiting = self.prompts.len() - 1;
        if waiting > 0 {
            area.lines.push(Line::styled(&format!("{waiting} more questions wait"), theme.dim));
        }
        if !self.input.is_empty() {
            let draft = self.input.history_text();
            let first = draft.lines().next().unwrap_or_default();
            area.lines.push(Line::styled(&format!("draft: {first}"), theme.dim).truncated(columns));
        }
    }

    fn add_input(&self, columns: usize, rows: usize, theme: &Theme, area: &mut Area) {
        self.add_lists(columns, theme, area);
        area.lines.push(Line::styled(&"─".repeat(columns), theme.border));
        if let Some(search) = &self.input.search {
            let line = Line::styled("history: ", theme.accent).with(search.query(), Style::default());
            let column = line.width().min(columns.saturating_sub(1));
            area.add(vec![line.truncated(columns)], Some((0, column)));
            return;
        }
        let mark = if self.input.is_shell { "! " } else { "› " };
        let layout = Layout::new(&self.input.editor, self.input_width());
        let height = layout.rows.len().min(MAX_INPUT_ROWS).min((rows / 3).max(1));
        let first = (layout.caret.row + 1).saturating_sub(height);
        let shown = layout.rows.iter().enumerate().skip(first).take(height);
        let mut lines: Vec<Line> = shown
            .map(|(index, row)| {
                let mut line = Line::styled(if index == 0 { mark } else { "  " }, theme.accent);
                for cell in &row.cells {
                    line.push(&cell.shown, if cell.is_label { theme.accent } else { Style::default() });
                }
                line
            })
            .collect();
        if self.input.is_empty()
            && let Some(line) = lines.first_mut()
        {
            line.push(self.placeholder(), theme.dim);
        }
        let lines = lines.iter().map(|line| line.cut(columns)).collect();
        area.add(lines, Some((layout.caret.row - first, layout.caret.column + 2)));
    }

    /// What an empty input line says.
    fn placeholder(&self) -> &'static str {
        if self.conversation.is_running() {
            "a message now is queued; Ctrl+S hands it to the running turn"
        } else if self.sent_prompts.is_empty() {
            "what is to be done? / lists commands, @ files, ! runs a command line"
        } else {
            ""
        }
    }

    fn add_lists(&self, columns: usize, theme: &Theme, area: &mut Area) {
        let row = |is_selected: bool, text: &str, detail: &str| {
            let (pointer, style) =
                if is_selected { ("❯ ", theme.selected) } else { ("  ", Style::default()) };
            let mut line = Line::styled(pointer, theme.accent).with(text, style);
            if !detail.is_empty() {
                line.push("  ", Style::default());
                line.push(detail, theme.dim);
            }
            line.truncated(columns)
        };
        if let Some(search) = &self.input.search {
            let lines: Vec<Line> = search
                .shown()
                .map(|(is_selected, entry)| row(is_selected, entry.lines().next().unwrap_or_default(), ""))
                .collect();
            area.lines.extend(lines.into_iter().rev());
        } else if let Some(completion) = &self.input.completion {
            let width = completion.shown().map(|(_, suggestion)| crate::text::width(&suggestion.label)).max();
            let width = width.unwrap_or(0).min(columns / 2);
            for (is_selected, suggestion) in completion.shown() {
                let gap = width.saturating_sub(crate::text::width(&suggestion.label));
                let label = match suggestion.detail.is_empty() {
                    true => suggestion.label.clone(),
                    false => format!("{}{}", suggestion.label, " ".repeat(gap)),
                };
                area.lines.push(row(is_selected, &label, &suggestion.detail));
            }
        }
    }
}

/// Who asks, the call of a permission prompt and why it is asked, in full.
pub(crate) fn request_lines(prompt: &Prompt, presenter: &Presenter) -> Vec<Line> {
    let theme = presenter.theme();
    let request = &prompt.request;
    let mut lines = Vec::new();
    if !prompt.agent.is_empty() {
        lines.push(Line::styled(&format!("  asked by {}", prompt.agent), theme.dim));
    }
    if !prompt.shows_call() {
        return lines;
    }
    let input = serde_json::Value::Object(request.input.clone());
    lines.extend(presenter.request(&request.tool_name, &input));
    let mut reasons = Vec::new();
    reasons.extend(request.decision_reason.clone());
    if let Some(rule) = &request.matched_ask_rule {
        let content = rule.rule_content.as_ref().map_or_else(String::new, |content| format!("({content})"));
        reasons.push(format!("the rule {}{content} in {} says to ask", rule.tool_name, rule.source));
    }
    lines.extend(reasons.iter().map(|reason| Line::styled(&format!("  why: {reason}"), theme.dim)));
    lines
}

fn add_menu(menu: &Menu, (columns, max_choices): (usize, usize), theme: &Theme, area: &mut Area) {
    let rendered = menu.render(columns, max_choices, theme);
    area.add(rendered.lines, rendered.caret);
}

fn agent_row(agent: &Subagent, now: Instant, theme: &Theme) -> Line {
    let elapsed = now.saturating_duration_since(agent.started);
    let state = match agent.state {
        AgentState::Background => " in the background",
        _ => "",
    };
    let indent = "  ".repeat(usize::try_from(agent.depth).unwrap_or_default());
    let mut line = Line::styled(&format!("{indent}{} ", tool_card::spinner_frame(elapsed)), theme.accent);
    line.push(&agent.definition, theme.strong);
    line.push(&format!(" {}", agent.description), Style::default());
    let mut details = format!(" · {} calls", agent.call_count);
    if agent.tokens > 0 {
        let tokens = usize::try_from(agent.tokens).unwrap_or(usize::MAX);
        details += &format!(" · {} tokens", short_number(tokens));
    }
    details += &format!(" · {}{state}", short_time(elapsed));
    if !agent.activity.is_empty() {
        details += &format!(" · {}", agent.activity);
    }
    line.push(&details, theme.dim);
    line
}

fn describe_phase(turn: &Turn, has_calls: bool, has_prompts: bool) -> &'static str {
    match (turn.interrupt, turn.phase) {
        (InterruptState::Requested, _) => "Interrupting",
        _ if has_prompts => "Waiting for you",
        (_, Phase::Compacting) => "Compacting the conversation",
        (_, Phase::Retrying) => "Repeating the model call",
        _ if has_calls => "Working",
        (_, Phase::Waiting) => "Waiting for the model",
        (_, Phase::Thinking) => "Thinking",
        (_, Phase::Writing) => "Writing",
    }
}

fn short_time(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

fn short_number(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

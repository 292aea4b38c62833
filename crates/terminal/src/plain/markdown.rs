//! Markdown as linear text: marks are left out where they only style, and each row of a table is a sentence.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Renders a text. Long lines are left to the terminal.
pub(super) fn render(source: &str) -> String {
    let mut text = Text::default();
    for event in Parser::new_ext(
        source,
        Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH,
    ) {
        text.event(event);
    }
    text.out.trim_end().to_owned()
}

#[derive(Default)]
struct Text {
    out: String,
    lists: Vec<Option<u64>>,
    head: Vec<String>,
    row: Vec<String>,
    cell: Option<String>,
    rows: usize,
    address: Option<String>,
}

impl Text {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.push(&text);
            }
            Event::SoftBreak => self.push(" "),
            Event::HardBreak => self.push("\n"),
            Event::Rule => self.block(),
            Event::TaskListMarker(is_done) => self.push(if is_done { "(done) " } else { "(open) " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.push(&text);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph if self.lists.is_empty() => self.block(),
            Tag::Heading { .. } | Tag::CodeBlock(_) => self.block(),
            Tag::BlockQuote(_) => {
                self.block();
                self.push("Quote: ");
            }
            Tag::Table(_) => {
                self.block();
                self.rows = 0;
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                let depth = self.lists.len().saturating_sub(1);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".into(),
                };
                self.push(&("  ".repeat(depth) + &mark));
            }
            Tag::TableCell => self.cell = Some(String::new()),
            Tag::Link { dest_url, .. } => self.address = Some(dest_url.into_string()),
            Tag::Image { dest_url, .. } => {
                self.push("picture ");
                self.address = Some(dest_url.into_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::Item => self.end_line(),
            TagEnd::List(_) => _ = self.lists.pop(),
            TagEnd::TableCell => self.row.extend(self.cell.take()),
            TagEnd::TableHead => self.head = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.end_row(),
            TagEnd::Link | TagEnd::Image => {
                if let Some(address) = self.address.take().filter(|address| !self.out.ends_with(address)) {
                    self.push(&format!(" ({address})"));
                }
            }
            _ => {}
        }
    }

    fn end_row(&mut self) {
        self.rows += 1;
        let row = std::mem::take(&mut self.row);
        let parts: Vec<String> =
            self.head.iter().zip(&row).map(|(name, cell)| format!("{name} is {cell}")).collect();
        let sentence = format!("Row {}: {}.\n", self.rows, parts.join("; "));
        self.push(&sentence);
    }

    fn push(&mut self, text: &str) {
        match &mut self.cell {
            Some(cell) => cell.push_str(text),
            None => self.out.push_str(text),
        }
    }

    /// Puts a blank line before a block.
    fn block(&mut self) {
        self.end_line();
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn end_line(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }
}

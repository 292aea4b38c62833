//! A Markdown text as lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::highlight::Highlighter;
use super::table::Table;
use crate::text::{Flow, Line, Style};
use crate::theme::Theme;

/// What we understand beyond CommonMark.
pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// The indent of code within text.
pub(super) const CODE_INDENT: &str = "  ";

/// Renders a text for a screen of `columns` columns. Blocks are separated by one blank line.
pub(crate) fn render(source: &str, columns: usize, theme: &Theme) -> Vec<Line> {
    let mut renderer = Renderer::new(columns, *theme);
    for event in Parser::new_ext(source, options()) {
        renderer.event(event);
    }
    renderer.end_paragraph();
    renderer.lines
}

/// The code blocks of a text, with their languages.
pub(crate) fn code_blocks(source: &str) -> Vec<(Option<String>, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(Option<String>, String)> = None;
    for event in Parser::new_ext(source, options()) {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => open = Some((language(&kind), String::new())),
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            Event::Text(text) => {
                if let Some((_, code)) = &mut open {
                    code.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

fn language(kind: &CodeBlockKind<'_>) -> Option<String> {
    match kind {
        CodeBlockKind::Fenced(info) => {
            info.split([' ', ',', '{']).next().filter(|name| !name.is_empty()).map(str::to_owned)
        }
        CodeBlockKind::Indented => None,
    }
}

/// What the rows of a container begin with.
struct Prefix {
    first: String,
    rest: String,
    is_used: bool,
}

/// What text is collected for.
enum Target {
    Paragraph,
    Code { language: String, text: String },
    Table(Table),
}

struct Renderer {
    columns: usize,
    theme: Theme,
    lines: Vec<Line>,
    inline: Line,
    styles: Vec<Style>,
    prefixes: Vec<Prefix>,
    /// Number of the next item of each open list; none for bullets.
    lists: Vec<Option<u64>>,
    target: Target,
    /// Addresses of the open links.
    links: Vec<(String, usize)>,
}

impl Renderer {
    fn new(columns: usize, theme: Theme) -> Self {
        Self {
            columns,
            theme,
            lines: Vec::new(),
            inline: Line::empty(),
            styles: Vec::new(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            target: Target::Paragraph,
            links: Vec::new(),
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(code) => self.inline_code(&code),
            Event::InlineHtml(html) | Event::Html(html) => self.html(&html),
            Event::SoftBreak => self.push(" ", Style::PLAIN),
            Event::HardBreak => self.end_paragraph(),
            Event::Rule => {
                self.separate();
                self.emit(Line::styled(&"─".repeat(self.columns.min(40)), self.theme.border));
            }
            Event::TaskListMarker(is_done) => self.push(if is_done { "☑ " } else { "☐ " }, self.theme.accent),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), self.theme.dim),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.separate(),
            Tag::Heading { level, .. } => {
                self.separate();
                let style = self.theme.heading;
                self.styles.push(if level == HeadingLevel::H1 { style.underlined() } else { style });
            }
            Tag::BlockQuote(_) => {
                self.separate();
                self.styles.push(self.theme.quote);
                self.prefixes.push(Prefix { first: "│ ".into(), rest: "│ ".into(), is_used: false });
            }
            Tag::CodeBlock(kind) => {
                self.end_paragraph();
                self.separate();
                self.target =
                    Target::Code { language: language(&kind).unwrap_or_default(), text: String::new() };
            }
            Tag::List(first) => {
                self.end_paragraph();
                self.separate();
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.separate();
                self.target = Target::Table(Table::new(alignments));
            }
            Tag::Emphasis => self.styles.push(self.theme.emphasis),
            Tag::Strong => self.styles.push(self.theme.strong),
            Tag::Strikethrough => self.styles.push(Style::PLAIN.struck()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.inline.text().len()));
                self.styles.push(self.theme.link);
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.styles.pop();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => _ = self.lists.pop(),
            TagEnd::Item => {
                self.end_paragraph();
                // An item without any text still shows its mark.
                if self.prefixes.last().is_some_and(|prefix| !prefix.is_used) {
                    self.emit(Line::empty());
                }
                self.prefixes.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => _ = self.styles.pop(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Target::Table(table) = &mut self.target {
                    table.end_row();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Target::Table(table) = &mut self.target {
                    table.push_cell(cell);
                }
            }
            _ => {}
        }
    }

    fn start_item(&mut self) {
        self.end_paragraph();
        let depth = self.lists.len();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ if depth % 2 == 1 => "• ".into(),
            _ => "◦ ".into(),
        };
        let rest = " ".repeat(crate::text::width(&mark));
        self.prefixes.push(Prefix { first: mark, rest, is_used: false });
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((address, start)) = self.links.pop() else { return };
        let text = self.inline.text();
        let label = text.get(start..).unwrap_or_default();
        let is_shown =
            address.is_empty() || address == label || address.strip_prefix("mailto:") == Some(label);
        if !is_shown {
            self.push(&format!(" ({address})"), self.theme.dim);
        }
    }

    fn end_code(&mut self) {
        let Target::Code { language, text } = std::mem::replace(&mut self.target, Target::Paragraph) else {
            return;
        };
        let mut highlighter = Highlighter::new(&language, self.theme);
        for code in text.lines() {
            self.emit(code_line(highlighter.line(code)));
        }
    }

    fn end_table(&mut self) {
        let Target::Table(table) = std::mem::replace(&mut self.target, Target::Paragraph) else { return };
        let columns = self.columns.saturating_sub(self.prefix_width());
        table.render(columns, &self.theme).into_iter().for_each(|line| self.emit(line));
    }

    fn text(&mut self, text: &str) {
        match &mut self.target {
            Target::Code { text: code, .. } => code.push_str(text),
            Target::Paragraph | Target::Table(_) => self.push(text, Style::PLAIN),
        }
    }

    fn inline_code(&mut self, code: &str) {
        // Without colors the marks tell what is code.
        if self.theme.code == Style::PLAIN {
            self.push(&format!("`{code}`"), Style::PLAIN);
        } else {
            self.push(code, self.theme.code);
        }
    }

    fn html(&mut self, html: &str) {
        if matches!(html.trim(), "<br>" | "<br/>" | "<br />") {
            match self.target {
                Target::Table(_) => self.push(" ", Style::PLAIN),
                _ => self.end_paragraph(),
            }
            return;
        }
        for (at, line) in html.lines().enumerate() {
            if at > 0 {
                self.end_paragraph();
            }
            self.push(line, self.theme.dim);
        }
        if html.ends_with('\n') {
            self.end_paragraph();
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().rev().fold(style, |style, below| style.over(*below));
        self.inline.push(text, style);
    }

    fn end_paragraph(&mut self) {
        if !self.inline.is_empty() && matches!(self.target, Target::Paragraph) {
            let line = std::mem::take(&mut self.inline);
            self.emit(line);
        }
    }

    /// Puts a blank line before a block, except at the start and within lists.
    fn separate(&mut self) {
        let is_first = self.prefixes.last().is_some_and(|prefix| !prefix.is_used);
        if self.lines.is_empty() || is_first || !self.lists.is_empty() {
            return;
        }
        self.emit(Line::empty());
    }

    fn emit(&mut self, line: Line) {
        if self.prefixes.is_empty() {
            self.lines.push(line);
            return;
        }
        let rest: String = self.prefixes.iter().map(|prefix| prefix.rest.as_str()).collect();
        let first: String = self
            .prefixes
            .iter_mut()
            .map(|prefix| {
                let is_used = std::mem::replace(&mut prefix.is_used, true);
                if is_used { prefix.rest.as_str() } else { prefix.first.as_str() }
            })
            .collect();
        self.lines.push(line.indented(&first, &rest, self.theme.dim));
    }

    fn prefix_width(&self) -> usize {
        self.prefixes.iter().map(|prefix| crate::text::width(&prefix.rest)).sum()
    }
}

/// A line of code as it stands in a text.
pub(super) fn code_line(line: Line) -> Line {
    line.flow(Flow::Anywhere).indented(CODE_INDENT, CODE_INDENT, Style::PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        let lines = render(source, 60, &Theme::DARK);
        lines.iter().map(|line| line.text().trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn blocks_are_separated_by_one_blank_line() {
        assert_eq!(
            text("# Head\ntext *a* `b`\n\n\n---\nmore"),
            "Head\n\ntext a b\n\n────────────────────────────────────────\n\nmore\n"
        );
    }

    #[test]
    fn lists_are_compact_and_nested() {
        assert_eq!(
            text("- one\n\n- two\n  - deep\n    more\n- [x] done\n\n3. c\n4. d\n"),
            "• one\n• two\n  ◦ deep more\n• ☑ done\n\n3. c\n4. d\n"
        );
    }

    #[test]
    fn code_in_a_list_belongs_to_its_item() {
        assert_eq!(
            text("1. run\n   ```sh\n   ls -l\n\n   pwd\n   ```\n2. look"),
            "1. run\n     ls -l\n\n     pwd\n2. look\n"
        );
    }

    #[test]
    fn quotes_have_a_bar() {
        assert_eq!(text("> one\n>\n> two"), "│ one\n│\n│ two\n");
    }

    #[test]
    fn links_show_their_address_once() {
        assert_eq!(
            text("[docs](https://a.b/c) <https://x.y> ![pic](p.png)"),
            "docs (https://a.b/c) https://x.y pic (p.png)\n"
        );
    }

    #[test]
    fn inline_code_keeps_its_marks_without_colors() {
        assert_eq!(render("a `b`", 60, &Theme::PLAIN)[0].text(), "a `b`");
    }

    #[test]
    fn code_blocks_are_found_for_copying() {
        assert_eq!(
            code_blocks("a\n```rust ignore\nfn a() {}\n```\n\n    plain\n"),
            [(Some("rust".into()), "fn a() {}\n".into()), (None, "plain\n".into())]
        );
    }
}

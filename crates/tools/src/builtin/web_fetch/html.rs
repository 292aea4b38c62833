//! HTML to Markdown. A hostile page may be nested so deeply that recursion overflows the stack, or expand a few bytes
//! into millions of nodes. So it is parsed in chunks with a depth check after each, and the tree is pruned before
//! conversion.

use std::rc::Rc;
use std::time::Duration;

use htmd::{HtmlToMarkdown, Node};
use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{NodeData, RcDom};
use whimbrel_os::clock;

/// Maximum nesting depth; ordinary pages stay far below.
const MAX_DEPTH: usize = 128;

/// Maximum number of nodes: more than fit into the longest page text.
const MAX_NODES: usize = 50_000;

/// Bytes parsed between two depth checks.
const PARSE_CHUNK_BYTES: usize = 4 << 10;

/// Time limit of parsing.
const PARSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Elements without readable text.
const SKIPPED_TAGS: [&str; 8] =
    ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"];

/// Converts a page to Markdown. Content beyond the limits is dropped.
pub(super) fn to_markdown(html: &str) -> String {
    let tree = parse_bounded(html);
    prune_tree(&tree);
    HtmlToMarkdown::builder().skip_tags(SKIPPED_TAGS.to_vec()).build().tree_to_markdown(&tree)
}

fn parse_bounded(html: &str) -> Rc<Node> {
    let dom = RcDom::default();
    let tree = dom.document.clone();
    let mut parser = parse_document(dom, ParseOpts::default());
    let (started, mut rest) = (clock::monotonic(), html);
    while !rest.is_empty() && started.elapsed() < PARSE_TIMEOUT && open_depth(&tree) <= MAX_DEPTH {
        let (chunk, remainder) = rest.split_at(rest.floor_char_boundary(PARSE_CHUNK_BYTES));
        parser.process(chunk.into());
        rest = remainder;
    }
    parser.finish();
    tree
}

/// Depth of the parser's current position.
fn open_depth(tree: &Rc<Node>) -> usize {
    std::iter::successors(Some(tree.clone()), |node| node.children.borrow().last().cloned()).count()
}

/// Removes nodes beyond the depth and node limits, and tables in captions: a caption may be visited twice, so nested
/// captions would double the work each time.
fn prune_tree(tree: &Rc<Node>) {
    let mut remaining = MAX_NODES;
    let mut pending = vec![(tree.clone(), 0, false)];
    while let Some((node, depth, in_caption)) = pending.pop() {
        let mut children = node.children.borrow_mut();
        if depth >= MAX_DEPTH || remaining == 0 || (in_caption && is_element(&node, "table")) {
            children.clear();
        }
        remaining = remaining.saturating_sub(1);
        let in_caption = in_caption || is_element(&node, "caption");
        pending.extend(children.iter().rev().map(|child| (child.clone(), depth + 1, in_caption)));
    }
}

fn is_element(node: &Node, tag: &str) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if &*name.local == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_markdown() {
        let html = "<!doctype html><html><head><title>Birds</title><style>b{}</style></head><body>\
            <script>let x = '<p>no</p>';</script><h1>Whimbrel</h1><p>A <b>wader</b>, see \
            <a href=\"/curlew\">curlew</a>.</p><ul><li>one<li>two</ul><pre><code>let x = 1;\n</code></pre>\
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>";
        let expected = "Birds\n\n# Whimbrel\n\nA **wader**, see [curlew](/curlew).\n\n*   one\n*   two\n\n\
            ```\nlet x = 1;\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |";
        assert_eq!(to_markdown(html), expected);
    }

    #[test]
    fn a_hostile_page_is_read_up_to_the_limits() {
        let nests = [
            "<div>",
            "<b>",
            "<span>x",
            "<blockquote>",
            "<ul><li>",
            "<ol><li>",
            "<table><tr><td>",
            "<table><thead></thead><caption>",
            "<table><th>",
            "<a href=x><table><td>",
            "<pre><code>",
            "<h1>",
            "<em>x<div>",
        ];
        for nest in nests {
            for times in [40, 4_000] {
                let text = to_markdown(&format!("<p>before</p>{}x", nest.repeat(times)));
                assert!(text.starts_with("before"), "{times} times {nest}: {text:.80}");
            }
        }
        let open: String = (0..100).map(|number| format!("<b id={number}>")).collect();
        for repeated in [format!("{open}{}", "<p>x".repeat(4_000)), "<i>x</i>".repeat(10_000)] {
            assert!(to_markdown(&format!("<p>before</p>{repeated}")).starts_with("before"));
        }
    }

    #[test]
    fn a_chunk_may_end_anywhere() {
        let html = format!("<p>{}</p>", "<b>é</b>, ".repeat(1_000));
        assert_eq!(to_markdown(&html).matches("**é**,").count(), 1_000);
    }
}

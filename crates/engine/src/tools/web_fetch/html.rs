//! HTML as Markdown. A page may be made to harm: nested so deep that walking it ends the process, or so that a few
//! bytes become millions of nodes. So it is parsed in pieces, with a look at the tree after each, and pruned before
//! it is walked.

use std::rc::Rc;
use std::time::Duration;

use htmd::{HtmlToMarkdown, Node};
use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{NodeData, RcDom};

use crate::clock;

/// How deep elements may lie in each other. Pages made for people stay far below.
const MAX_DEPTH: usize = 128;

/// How many nodes are read: more than fit into the longest text that we take from a page.
const MAX_NODES: usize = 50_000;

/// How many bytes are parsed between two looks at the tree.
const PARSE_CHUNK_BYTES: usize = 4 << 10;

/// How long parsing may take.
const PARSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What holds nothing to read.
const SKIPPED_TAGS: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas"];

/// The text of a page as Markdown. What is nested too deep, or too much, is left out.
pub(super) fn to_markdown(html: &str) -> String {
    let tree = parse_bounded(html);
    prune_tree(&tree);
    HtmlToMarkdown::builder().skip_tags(SKIPPED_TAGS.to_vec()).build().tree_to_markdown(&tree)
}

fn parse_bounded(html: &str) -> Rc<Node> {
    let dom = RcDom::default();
    let tree = dom.document.clone();
    let mut parser = parse_document(dom, ParseOpts::default());
    let (began, mut rest) = (clock::monotonic(), html);
    while !rest.is_empty() && began.elapsed() < PARSE_TIMEOUT && open_depth(&tree) <= MAX_DEPTH {
        let (piece, later) = rest.split_at(rest.floor_char_boundary(PARSE_CHUNK_BYTES));
        parser.process(piece.into());
        rest = later;
    }
    parser.finish();
    tree
}

/// How deep the place lies where the parser is.
fn open_depth(tree: &Rc<Node>) -> usize {
    std::iter::successors(Some(tree.clone()), |node| node.children.borrow().last().cloned()).count()
}

/// Takes out what lies too deep, what comes after enough, and tables in captions: a caption may be walked twice, and
/// with captions in captions that doubles each time.
fn prune_tree(tree: &Rc<Node>) {
    let mut left = MAX_NODES;
    let mut waiting = vec![(tree.clone(), 0, false)];
    while let Some((node, depth, in_caption)) = waiting.pop() {
        let mut children = node.children.borrow_mut();
        if depth >= MAX_DEPTH || left == 0 || (in_caption && is_element(&node, "table")) {
            children.clear();
        }
        left = left.saturating_sub(1);
        let in_caption = in_caption || is_element(&node, "caption");
        waiting.extend(children.iter().rev().map(|child| (child.clone(), depth + 1, in_caption)));
    }
}

fn is_element(node: &Node, tag: &str) -> bool {
    matches!(&node.data, NodeData::Element { name, .. } if &*name.local == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_as_markdown() {
        let html = "<!doctype html><html><head><title>Birds</title><style>b{}</style></head><body>\
            <script>let x = '<p>no</p>';</script><h1>Whimbrel</h1><p>A <b>wader</b>, see \
            <a href=\"/curlew\">curlew</a>.</p><ul><li>one<li>two</ul><pre><code>let x = 1;\n</code></pre>\
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>";
        let expected = "Birds\n\n# Whimbrel\n\nA **wader**, see [curlew](/curlew).\n\n*   one\n*   two\n\n\
            ```\nlet x = 1;\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |";
        assert_eq!(to_markdown(html), expected);
    }

    #[test]
    fn a_page_made_to_harm_is_read_as_far_as_it_goes() {
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
    fn a_piece_may_end_anywhere() {
        let html = format!("<p>{}</p>", "<b>é</b>, ".repeat(1_000));
        assert_eq!(to_markdown(&html).matches("**é**,").count(), 1_000);
    }
}

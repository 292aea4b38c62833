//! PDFs for the model: the requested pages as a document.

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId, dictionary};
use serde_json::json;
use whimbrel_wire::content::{Block, ResultContent, Source};

use super::base64_for_host;
use crate::api::{ToolError, ToolOutput};

/// Maximum number of pages per call.
const MAX_PAGES: usize = 20;
/// Maximum document size in bytes; in base64 it still fits into a request with a conversation.
const MAX_DOCUMENT_BYTES: usize = 20 * 1024 * 1024;
/// Maximum size of one decompressed stream.
const MAX_DECOMPRESSED_BYTES: usize = 64 * 1024 * 1024;

/// Detects a PDF by its magic bytes.
pub(super) fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

pub(super) fn render_pdf(path: &Path, bytes: &[u8], pages: Option<&str>) -> Result<ToolOutput, ToolError> {
    let options =
        LoadOptions { max_decompressed_size: Some(MAX_DECOMPRESSED_BYTES), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| ToolError::Failed(format!("{} cannot be read as a PDF: {error}", path.display())))?;
    if document.is_encrypted() {
        return Err(ToolError::Rejected(format!("{} needs a password.", path.display())));
    }
    let all: Vec<ObjectId> = document.page_iter().collect();
    if all.is_empty() {
        return Err(ToolError::Failed(format!("{} has no pages.", path.display())));
    }
    let selected = select_pages(pages, all.len())
        .map_err(|reason| ToolError::Rejected(format!("{}: {reason}", path.display())))?;
    let sent = if selected.len() == all.len() && !document.was_encrypted() {
        bytes.to_vec()
    } else {
        let page_ids: Vec<ObjectId> = selected.iter().filter_map(|page| all.get(page - 1).copied()).collect();
        extract_pages(document, &page_ids).map_err(|error| {
            ToolError::Failed(format!("{} cannot be split into pages: {error}", path.display()))
        })?
    };
    if sent.len() > MAX_DOCUMENT_BYTES {
        return Err(ToolError::Rejected(too_large_message(path, sent.len(), selected.len())));
    }
    let base64 = BASE64_STANDARD.encode(&sent);
    let file = json!({"filePath": path.to_string_lossy(), "base64": base64_for_host(&base64), "originalSize": bytes.len()});
    let note = format!("{}: {} of {} pages.", path.display(), selected.len(), all.len());
    let source = Source::Base64 { media_type: "application/pdf".into(), data: base64 };
    let blocks = vec![Block::text(note), Block::Document { source, title: None }];
    Ok(ToolOutput { content: ResultContent::Blocks(blocks), meta: json!({"type": "pdf", "file": file}) })
}

fn too_large_message(path: &Path, size: usize, pages: usize) -> String {
    let hint = if pages > 1 { "Request fewer pages" } else { "Extract its text or images with a command" };
    let (size, limit) = (size >> 20, MAX_DOCUMENT_BYTES >> 20);
    format!("{}: these pages are {size} MB; the limit is {limit} MB. {hint}.", path.display())
}

/// Parses a page selection: `3`, `1-5`, `7-`, or a comma-separated list. All pages if empty.
fn select_pages(pages: Option<&str>, total: usize) -> Result<Vec<usize>, String> {
    let Some(pages) = pages.filter(|pages| !pages.trim().is_empty()) else {
        return if total <= MAX_PAGES {
            Ok((1..=total).collect())
        } else {
            Err(format!(
                "it has {total} pages. Select some with `pages`, e.g. \"1-{MAX_PAGES}\"; at most {MAX_PAGES} at once."
            ))
        };
    };
    let mut selected = Vec::new();
    for part in pages.split(',') {
        let (first, last) =
            parse_range(part.trim(), total).ok_or_else(|| format!("\"{pages}\" is not a page range."))?;
        if first > total {
            return Err(format!("there is no page {first}: it has {total} pages."));
        }
        selected.extend(first..=last.min(total));
        if selected.len() > MAX_PAGES {
            return Err(format!("at most {MAX_PAGES} pages can be read at once."));
        }
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(selected)
}

fn parse_range(part: &str, total: usize) -> Option<(usize, usize)> {
    let (first, last) = match part.split_once('-') {
        Some((first, "")) => (first.trim().parse().ok()?, total.max(1)),
        Some((first, last)) => (first.trim().parse().ok()?, last.trim().parse().ok()?),
        None => (part.parse().ok()?, part.parse().ok()?),
    };
    (first >= 1 && (first <= last || first > total)).then_some((first, last))
}

/// Creates a document with only these pages and their resources.
fn extract_pages(mut document: Document, selected: &[ObjectId]) -> lopdf::Result<Vec<u8>> {
    let root = document.new_object_id();
    for page in selected {
        let inherited = inherited_attributes(&document, *page);
        let page = document.get_dictionary_mut(*page)?;
        inherited.into_iter().for_each(|(key, value)| page.set(key, value));
        page.set("Parent", root);
    }
    // Links may point to removed pages; dangling links are allowed.
    let others: Vec<ObjectId> = document.page_iter().filter(|page| !selected.contains(page)).collect();
    others.iter().for_each(|page| drop(document.objects.remove(page)));
    let kids: Vec<Object> = selected.iter().map(|page| Object::Reference(*page)).collect();
    let count = kids.len() as i64;
    document.objects.insert(root, dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count }.into());
    let catalog = document.catalog_mut()?;
    *catalog = dictionary! { "Type" => "Catalog", "Pages" => root };
    document.prune_objects();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes)?;
    Ok(bytes)
}

/// Attributes that a page inherits from the page tree.
fn inherited_attributes(document: &Document, page: ObjectId) -> Vec<(&'static str, Object)> {
    const INHERITABLE: [&str; 4] = ["Resources", "MediaBox", "CropBox", "Rotate"];
    let parent_dictionary = |dictionary: &Dictionary| {
        let parent = dictionary.get(b"Parent").and_then(Object::as_reference).ok()?;
        document.get_dictionary(parent).ok()
    };
    let lookup = |key: &'static str| {
        let own = document.get_dictionary(page).ok()?;
        let mut chain = std::iter::successors(Some(own), |dictionary| parent_dictionary(dictionary)).take(64);
        chain.find_map(|dictionary| dictionary.get(key.as_bytes()).ok()).map(|value| (key, value.clone()))
    };
    INHERITABLE.into_iter().filter_map(lookup).collect()
}

#[cfg(test)]
mod tests {
    use lopdf::Stream;

    use super::*;

    /// A document whose pages inherit their size and contain their number.
    fn document(pages: usize) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let root = document.new_object_id();
        let mut kids = Vec::new();
        for number in 1..=pages {
            let content = document
                .add_object(Stream::new(Dictionary::new(), format!("(page {number}) Tj").into_bytes()));
            let page = document
                .add_object(dictionary! { "Type" => "Page", "Parent" => root, "Contents" => content });
            kids.push(Object::Reference(page));
        }
        let size: Vec<Object> = [0, 0, 100, 200].map(Object::from).to_vec();
        let tree =
            dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => pages as i64, "MediaBox" => size };
        document.objects.insert(root, tree.into());
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => root });
        document.trailer.set("Root", catalog);
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    fn sent_document(output: &ToolOutput) -> Document {
        let ResultContent::Blocks(blocks) = &output.content else { panic!("no blocks") };
        let Block::Document { source: Source::Base64 { data, .. }, .. } = &blocks[1] else {
            panic!("no document")
        };
        Document::load_mem(&BASE64_STANDARD.decode(data).unwrap()).unwrap()
    }

    #[test]
    fn only_requested_pages_are_sent_with_inherited_attributes() {
        let bytes = document(30);
        let output = render_pdf(Path::new("/d.pdf"), &bytes, Some("3-4")).unwrap();
        let sent = sent_document(&output);
        let pages: Vec<ObjectId> = sent.page_iter().collect();
        let contents: Vec<Vec<u8>> = pages.iter().map(|page| sent.get_page_content(*page)).collect();
        let contents: Vec<_> =
            contents.iter().map(|text| String::from_utf8_lossy(text).trim().to_owned()).collect();
        assert_eq!(contents, ["(page 3) Tj", "(page 4) Tj"]);
        assert!(sent.get_dictionary(pages[0]).unwrap().get(b"MediaBox").is_ok());
        assert!(sent.objects.len() < 10, "{:?}", sent.objects.keys());
        assert_eq!(output.meta["file"]["originalSize"], bytes.len());
    }

    #[test]
    fn a_short_document_is_sent_unchanged() {
        let bytes = document(2);
        let output = render_pdf(Path::new("/d.pdf"), &bytes, None).unwrap();
        assert_eq!(output.meta["file"]["base64"], BASE64_STANDARD.encode(&bytes));
    }

    #[test]
    fn a_large_scan_is_sent_but_not_to_the_host() {
        let mut bytes = document(1);
        bytes.extend(vec![b'\n'; 3 << 20]);
        let output = render_pdf(Path::new("/d.pdf"), &bytes, None).unwrap();
        assert_eq!(output.meta["file"]["base64"], "");
        let ResultContent::Blocks(blocks) = &output.content else { panic!("no blocks") };
        let Block::Document { source: Source::Base64 { data, .. }, .. } = &blocks[1] else {
            panic!("no document")
        };
        assert_eq!(data.len(), bytes.len().div_ceil(3) * 4);
        bytes.extend(vec![b'\n'; MAX_DOCUMENT_BYTES]);
        let error = render_pdf(Path::new("/d.pdf"), &bytes, None).unwrap_err();
        assert!(error.reason().contains("23 MB; the limit is 20 MB"), "{error:?}");
    }

    #[test]
    fn page_selections_are_parsed() {
        for (pages, total, chosen) in [
            (None, 20, Ok((1..=20).collect())),
            (None, 21, Err("21 pages")),
            (Some("3"), 9, Ok(vec![3])),
            (Some("2-4"), 9, Ok(vec![2, 3, 4])),
            (Some("8-12"), 9, Ok(vec![8, 9])),
            (Some("8-"), 9, Ok(vec![8, 9])),
            (Some("5, 1-2,2"), 9, Ok(vec![1, 2, 5])),
            (Some("10"), 9, Err("no page 10")),
            (Some("12-14"), 9, Err("no page 12")),
            (Some("1-21"), 90, Err("at most 20")),
            (Some("4-2"), 9, Err("not a page range")),
            (Some("0"), 9, Err("not a page range")),
            (Some("all"), 9, Err("not a page range")),
        ] {
            match (select_pages(pages, total), chosen) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{pages:?}"),
                (Err(error), Err(words)) => assert!(error.contains(words), "{pages:?}: {error}"),
                (found, _) => panic!("{pages:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn an_invalid_document_is_an_error() {
        assert!(matches!(
            render_pdf(Path::new("/d.pdf"), b"%PDF-1.7 nonsense", None),
            Err(ToolError::Failed(_))
        ));
    }
}

// Markdown to templates. The lexer of marked makes tokens; nothing here makes a string of HTML. HTML in the text stays text.

import { html, nothing, type TemplateResult } from 'lit-html'
import { Lexer, type Token, type Tokens } from 'marked'
import { codeBlock } from './code'
import { visible } from './visible'

/** Texts above this size are shown as they are. */
const MAX_MARKDOWN = 200_000

/** Lines above this size make the lexer slow, so such a text is shown as it is. */
const MAX_LINE = 20_000

type Part = TemplateResult | typeof nothing | ReturnType<typeof visible> | Part[]

/** Tokens of a text that grows at its end: only what follows the last finished block is read again. */
export class GrowingMarkdown {
  private text = ''
  private settled: Token[] = []
  private settledLength = 0

  tokens (text: string): Token[] {
    if (!text.startsWith(this.text)) {
      this.settled = []
      this.settledLength = 0
    }
    this.text = text
    const tail = lex(text.slice(this.settledLength))
    let finished = 0
    const keep = tail.findLastIndex(token => token.type !== 'space')
    for (const token of tail.slice(0, Math.max(0, keep))) {
      this.settled.push(token)
      finished += token.raw.length
    }
    // The lexer normalizes tabs and line ends, so a length may be off; then everything is read again next time.
    if (text.slice(this.settledLength + finished).startsWith(tail[Math.max(0, keep)]?.raw.slice(0, 1) ?? '')) this.settledLength += finished
    else { this.settled = []; this.settledLength = 0; return lex(text) }
    return [...this.settled, ...tail.slice(Math.max(0, keep))]
  }
}

function lex (text: string): Token[] {
  return new Lexer({ gfm: true }).lex(text)
}

export function isPlain (text: string): boolean {
  return text.length > MAX_MARKDOWN || (text.length > MAX_LINE && text.split('\n').some(line => line.length > MAX_LINE))
}

export function markdown (text: string, growing?: GrowingMarkdown): TemplateResult {
  if (isPlain(text)) return html`<pre class="plain">${visible(text)}</pre>`
  const unix = text.replaceAll('\r\n', '\n')
  return html`<div class="markdown">${blocks(growing ? growing.tokens(unix) : lex(unix))}</div>`
}

function blocks (tokens: Token[]): Part[] {
  return tokens.map(block)
}

function block (token: Token): Part {
  switch (token.type) {
    case 'space': case 'def': return nothing
    case 'heading': return heading(token as Tokens.Heading)
    case 'paragraph': return html`<p>${inline((token as Tokens.Paragraph).tokens)}</p>`
    case 'code': return codeBlock((token as Tokens.Code).text, (token as Tokens.Code).lang ?? '')
    case 'blockquote': return html`<blockquote>${blocks((token as Tokens.Blockquote).tokens)}</blockquote>`
    case 'hr': return html`<hr>`
    case 'list': return list(token as Tokens.List)
    case 'table': return table(token as Tokens.Table)
    case 'text': return inline((token as Tokens.Text).tokens ?? [token])
    default: return html`<p>${visible(token.raw)}</p>`
  }
}

/** Headings of a message rank below those of the page. */
function heading (token: Tokens.Heading): TemplateResult {
  const content = inline(token.tokens)
  if (token.depth === 1) return html`<h2 class="h1">${content}</h2>`
  if (token.depth === 2) return html`<h3 class="h2">${content}</h3>`
  return html`<h4 class="h3">${content}</h4>`
}

function list (token: Tokens.List): TemplateResult {
  const items = token.items.map(item => html`<li class=${item.task ? 'task' : ''}>${
    item.task ? html`<input type="checkbox" disabled .checked=${Boolean(item.checked)} aria-label=${item.checked ? 'done' : 'open'}>` : nothing
  }${blocks(item.tokens.filter(token => token.type !== 'checkbox'))}</li>`)
  if (!token.ordered) return html`<ul>${items}</ul>`
  return html`<ol start=${token.start === '' ? 1 : token.start}>${items}</ol>`
}

function table (token: Tokens.Table): TemplateResult {
  const cell = (cell: Tokens.TableCell, index: number, name: 'th' | 'td') => {
    const align = token.align[index] ?? ''
    return name === 'th'
      ? html`<th class=${align} scope="col">${inline(cell.tokens)}</th>`
      : html`<td class=${align}>${inline(cell.tokens)}</td>`
  }
  return html`<div class="table" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr>${token.header.map((head, index) => cell(head, index, 'th'))}</tr></thead>
    <tbody>${token.rows.map(row => html`<tr>${row.map((data, index) => cell(data, index, 'td'))}</tr>`)}</tbody>
  </table></div>`
}

function inline (tokens: Token[]): Part[] {
  return tokens.map(token => {
    switch (token.type) {
      case 'strong': return html`<strong>${inline((token as Tokens.Strong).tokens)}</strong>`
      case 'em': return html`<em>${inline((token as Tokens.Em).tokens)}</em>`
      case 'del': return html`<del>${inline((token as Tokens.Del).tokens)}</del>`
      case 'codespan': return html`<code>${visible((token as Tokens.Codespan).text)}</code>`
      case 'br': return html`<br>`
      case 'link': return link(token as Tokens.Link)
      case 'image': return html`<span class="image">[picture: ${visible((token as Tokens.Image).text)} ${visible((token as Tokens.Image).href)}]</span>`
      case 'escape': return visible((token as Tokens.Escape).text)
      case 'text': return (token as Tokens.Text).tokens ? inline((token as Tokens.Text).tokens!) : visible((token as Tokens.Text).text)
      default: return visible(token.raw)
    }
  })
}

/** The address if it may be followed: http, https and mailto only. */
export function safeAddress (href: string): string | null {
  try {
    const url = new URL(href)
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null
  } catch {
    return null
  }
}

function link (token: Tokens.Link): Part {
  const address = safeAddress(token.href)
  const content = inline(token.tokens)
  if (address === null) return token.href === token.text ? content : html`<span class="dead-link">${content} <span class="address">(${visible(token.href)})</span></span>`
  return html`<a href=${address} title=${address} target="_blank" rel="noopener noreferrer nofollow">${content}</a>`
}

// A diff as a table: line numbers, a sign, the text with its changed words marked.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import type { Line } from '../text/diff'
import { plural } from '../text/format'
import { visible } from '../text/visible'
import { isOpen, toggle } from './fold'

/** Lines of a diff that are drawn at once, and at most. */
const FIRST_LINES = 24
const MAX_LINES = 2000

export function diffTable (app: App, key: string, lines: Line[], label: string, numbered = true): TemplateResult {
  const shown = withoutCarriageReturns(lines)
  const open = isOpen(key)
  const limit = open ? MAX_LINES : shown.length <= FIRST_LINES + 6 ? shown.length : FIRST_LINES
  const hidden = shown.length - limit
  return html`<div class="diff ${numbered ? '' : 'unnumbered'}" tabindex="0" role="group" aria-label=${label}>
    <table role="presentation"><tbody>${shown.slice(0, limit).map(row)}</tbody></table></div>
    ${hidden > 0 && !open ? html`<button type="button" class="fold" aria-expanded="false" @click=${() => toggle(app, key)}>Show ${plural(hidden, 'more line')}</button>` : nothing}
    ${hidden > 0 && open ? html`<p class="fold-note">${plural(hidden, 'more line')} not shown</p>` : nothing}
    ${open ? html`<button type="button" class="fold" aria-expanded="true" @click=${() => toggle(app, key)}>Show less</button>` : nothing}`
}

/** A file with CRLF everywhere is shown without them; where only some lines have them, they are shown. */
function withoutCarriageReturns (lines: Line[]): Line[] {
  const texts = lines.filter(line => line.kind !== 'skip')
  if (!texts.length || !texts.every(line => line.text.endsWith('\r'))) return lines
  return lines.map(line => line.kind === 'skip' ? line : { ...line, text: line.text.slice(0, -1) })
}

function row (line: Line): TemplateResult {
  if (line.kind === 'skip') return html`<tr class="skip"><td colspan="3">${plural(line.count, 'unchanged line')}</td></tr>`
  const sign = line.kind === 'added' ? '+' : line.kind === 'removed' ? '−' : ' '
  const number = line.kind === 'removed' ? line.old : line.new
  return html`<tr class=${line.kind}><td class="number" data-number=${number || ''}></td><td class="sign">${sign}</td><td class="line">${marked(line.text.slice(0, 4000), line.marks)}</td></tr>`
}

function marked (text: string, marks: [number, number][]) {
  if (!marks.length) return visible(text) || ' '
  const parts: unknown[] = []
  let at = 0
  for (const [begin, end] of marks) {
    parts.push(visible(text.slice(at, begin)), html`<mark>${visible(text.slice(begin, end))}</mark>`)
    at = end
  }
  parts.push(visible(text.slice(at)))
  return parts
}

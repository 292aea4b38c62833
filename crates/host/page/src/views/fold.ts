// What a person has opened and closed, and long texts that are folded.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import { plural } from '../text/format'
import { splitLines } from '../text/diff'
import { visible } from '../text/visible'

const choices = new Map<string, boolean>()
let version = 0

/** Changes with every choice; part of the keys by which drawn items are kept. */
export function foldVersion (): number {
  return version
}

export function isOpen (key: string, byDefault = false): boolean {
  return choices.get(key) ?? byDefault
}

export function toggle (app: App, key: string, byDefault = false) {
  choices.set(key, !isOpen(key, byDefault))
  version++
  app.changed()
}

/** Lines above which a text is folded. */
export const FOLD_LINES = 20

const HEAD_LINES = 9
const TAIL_LINES = 7

/** Characters of a line that are drawn. */
const MAX_LINE = 4000

/** Lines that are drawn after a person asked for all. */
const MAX_LINES = 5000

/** A text with its middle folded: the beginning says what runs, the end how it went. */
export function foldedText (app: App, key: string, text: string, label: string): TemplateResult {
  const lines = splitLines(text.replace(/^<tool_use_error>([\s\S]*)<\/tool_use_error>$/, '$1'))
  const open = isOpen(key)
  const output = label === 'Output' || label === 'File' ? 'output' : 'output wrapped'
  if (lines.length <= FOLD_LINES || open) {
    const shown = lines.slice(0, MAX_LINES)
    return html`<pre class=${output} tabindex="0" aria-label=${label}>${shown.map((line, index) => outputLine(app, `${key}:${index}`, line, index < shown.length - 1))}</pre>
      ${lines.length > MAX_LINES ? html`<p class="fold-note">${plural(lines.length - MAX_LINES, 'more line')} not shown</p>` : nothing}
      ${open ? html`<button type="button" class="fold" aria-expanded="true" @click=${() => toggle(app, key)}>Show less</button>` : nothing}`
  }
  const hidden = lines.length - HEAD_LINES - TAIL_LINES
  return html`<pre class=${output} tabindex="0" aria-label=${label}>${lines.slice(0, HEAD_LINES).map((line, index) => outputLine(app, `${key}:${index}`, line, true))}</pre>
    <button type="button" class="fold" aria-expanded="false" @click=${() => toggle(app, key)}>Show ${plural(hidden, 'more line')}</button>
    <pre class="${output} tail" tabindex="0" aria-label="${label}, end">${lines.slice(-TAIL_LINES).map((line, index) => outputLine(app, `${key}:-${index}`, line, index < TAIL_LINES - 1))}</pre>`
}

function outputLine (app: App, key: string, line: string, lineBreak: boolean) {
  const end = lineBreak ? '\n' : ''
  if (line.length <= MAX_LINE) return [visible(line), end]
  if (isOpen(key)) return [visible(line.slice(0, 1 << 20)), end]
  return html`${visible(line.slice(0, 500))}<button type="button" class="fold inline" @click=${() => toggle(app, key)}>… ${plural(line.length - 500, 'more character')}</button>${end}`
}

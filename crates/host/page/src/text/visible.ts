// Control characters of model and tool output are shown as text, so that they can change neither the order nor the looks of
// what a person reads.

import { html, type TemplateResult } from 'lit-html'

export type Text = string | (string | TemplateResult)[]

/** C0 and C1 controls except tab and line feed, bidi controls, zero-width characters, tags, and the byte order mark. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/u

const NAMES: Record<number, string> = { 0x1b: 'ESC', 0x0d: 'CR', 0x08: 'BS', 0x07: 'BEL', 0x00: 'NUL', 0x7f: 'DEL' }

/** Emoji are joined by U+200D; between two of them it is no trick. */
const EMOJI_JOINER = /\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]?\u200d(?=\p{Extended_Pictographic})/gu

export function characterName (character: string): string {
  const code = character.codePointAt(0) ?? 0
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/** The parts of a text: every second one is a hidden character. */
export function splitHidden (text: string): string[] {
  const joined = text.includes('\u200d') ? text.replace(EMOJI_JOINER, pair => pair.replace('\u200d', '\ue000')) : text
  const parts: string[] = []
  let plain = ''
  for (const character of joined) {
    if (HIDDEN.test(character)) {
      parts.push(plain, character)
      plain = ''
    } else {
      plain += character
    }
  }
  parts.push(plain)
  return parts.map(part => part.replaceAll('\ue000', '\u200d'))
}

/** A text that can be put into a template: each hidden character by its name. */
export function visible (text: string): Text {
  const unix = text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text
  if (!HIDDEN.test(unix)) return unix
  return splitHidden(unix).map((part, index) => index % 2 === 0 ? part : html`<span class="control" title="control character">${characterName(part)}</span>`)
}

/** The same as plain text, for labels and titles. */
export function visibleText (text: string): string {
  if (!HIDDEN.test(text)) return text
  return splitHidden(text).map((part, index) => index % 2 === 0 ? part : `<${characterName(part)}>`).join('')
}

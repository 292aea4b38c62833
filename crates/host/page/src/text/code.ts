// Code blocks with a language name and a copy button. The highlighter is a file of its own that is loaded with the first block.

import { html, type TemplateResult } from 'lit-html'
import { visible } from './visible'

type Highlighter = typeof import('./highlight')

let highlighter: Highlighter | undefined
let loading: Promise<void> | undefined
let loaded: () => void = () => {}

/** Registers what to do when the highlighter is there: the page draws again. */
export function onHighlighter (callback: () => void) {
  loaded = callback
}

/** Code above this size is not highlighted. */
const MAX_HIGHLIGHT = 60_000

/** Changes when the highlighter is there; part of the keys by which drawn items are kept. */
export function highlighterVersion (): number {
  return highlighter ? 1 : 0
}

export function highlight (code: string, language: string): TemplateResult | ReturnType<typeof visible> {
  if (code.length > MAX_HIGHLIGHT || !language) return visible(code)
  if (!highlighter) {
    loading ??= import('./highlight').then(module => { highlighter = module; loaded() }, () => { loading = undefined })
    return visible(code)
  }
  const tokens = highlighter.tokenize(code, language)
  if (!tokens) return visible(code)
  return html`${tokens.map(([kind, text]) => kind ? html`<span class="hl-${kind}">${visible(text)}</span>` : visible(text))}`
}

export function codeBlock (code: string, info: string): TemplateResult {
  const language = info.trim().split(/[\s{,]/)[0]?.toLowerCase() ?? ''
  return html`<figure class="code">
    <figcaption><span>${visible(language || 'text')}</span>${copyButton(code)}</figcaption>
    <pre tabindex="0"><code>${highlight(code, language)}</code></pre>
  </figure>`
}

export function copyButton (text: string): TemplateResult {
  const copy = async (event: Event) => {
    const button = event.currentTarget as HTMLButtonElement
    try {
      await navigator.clipboard.writeText(text)
      button.classList.add('copied')
      window.setTimeout(() => button.classList.remove('copied'), 1200)
    } catch {
      // Without permission for the clipboard the text can still be selected.
    }
  }
  return html`<button type="button" class="copy" @click=${copy}><span class="before">Copy</span><span class="after">Copied</span></button>`
}

const LANGUAGES: Record<string, string> = {
  rs: 'rust', py: 'python', js: 'js', mjs: 'js', cjs: 'js', jsx: 'js', ts: 'ts', tsx: 'ts', go: 'go', c: 'c', h: 'c', cc: 'cpp', cpp: 'cpp', hpp: 'cpp',
  java: 'java', kt: 'kotlin', swift: 'swift', cs: 'csharp', rb: 'ruby', php: 'php', sh: 'bash', bash: 'bash', zsh: 'bash', json: 'json', jsonl: 'json', toml: 'toml',
  yaml: 'yaml', yml: 'yaml', css: 'css', html: 'html', xml: 'html', svg: 'html', sql: 'sql', lua: 'lua', md: ''
}

export function languageOf (path: string): string {
  const name = path.split('/').pop() ?? ''
  if (name === 'Dockerfile' || name === 'Makefile') return 'bash'
  return LANGUAGES[name.split('.').pop()?.toLowerCase() ?? ''] ?? ''
}

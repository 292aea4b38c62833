// Line icons, drawn as SVG elements in the color of the text.

import { svg, html, type TemplateResult } from 'lit-html'

const PATHS = {
  terminal: svg`<path d="M4 5l4 3-4 3M9 12h4"/>`,
  file: svg`<path d="M4 2.5h5l3 3v8H4zM9 2.5v3h3"/>`,
  pencil: svg`<path d="M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2zM9.5 4.3l2.2 2.2"/>`,
  search: svg`<circle cx="7" cy="7" r="4"/><path d="M10 10l3.5 3.5"/>`,
  globe: svg`<circle cx="8" cy="8" r="5.5"/><path d="M2.5 8h11M8 2.5c3.2 3.6 3.2 7.4 0 11M8 2.5c-3.2 3.6-3.2 7.4 0 11"/>`,
  agent: svg`<circle cx="5" cy="4" r="1.7"/><circle cx="11.5" cy="8" r="1.7"/><circle cx="5" cy="12" r="1.7"/><path d="M5 5.700v4.600M5 8h4.8"/>`,
  list: svg`<path d="M2.5 4.500l1.2 1.2 2-2.200M2.5 10.500l1.2 1.2 2-2.200M8 5h5.500M8 11h5.5"/>`,
  plug: svg`<path d="M6 2.500V5M10 2.500V5M4.5 5h7v2.500a3.5 3.5 0 0 1-7 0zM8 11v2.5"/>`,
  question: svg`<circle cx="8" cy="8" r="5.5"/><path d="M6.3 6.400c.2-2 3.6-1.9 3.5 0-.1 1.2-1.7 1.3-1.8 2.600M8 11.200v.1"/>`,
  check: svg`<path d="M3.5 8.500l3 3 6-7"/>`,
  cross: svg`<path d="M4 4l8 8M12 4l-8 8"/>`,
  stop: svg`<rect x="4.5" y="4.5" width="7" height="7" rx="1"/>`,
  clock: svg`<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3.200l2 1.3"/>`,
  slash: svg`<circle cx="8" cy="8" r="5.5"/><path d="M4.2 4.200l7.6 7.6"/>`,
  chevron: svg`<path d="M6 4l4 4-4 4"/>`,
  fork: svg`<circle cx="4.5" cy="3.5" r="1.5"/><circle cx="11.5" cy="3.5" r="1.5"/><circle cx="8" cy="12.5" r="1.5"/><path d="M4.5 5v1c0 2 3.5 2 3.5 4.500M11.5 5v1c0 2-3.5 2-3.5 4.5"/>`,
  rewind: svg`<path d="M3 4v3.500h3.500M3.3 7.500a5 5 0 1 1 .9 3.5"/>`,
  more: svg`<circle cx="3.5" cy="8" r=".6"/><circle cx="8" cy="8" r=".6"/><circle cx="12.5" cy="8" r=".6"/>`,
  panel: svg`<rect x="2.5" y="3" width="11" height="10" rx="1.5"/><path d="M10 3v10"/>`,
  clip: svg`<path d="M12.5 7.500L7.7 12.300a2.8 2.8 0 0 1-4-4L9 3a1.9 1.9 0 0 1 2.7 2.700L6.6 10.800a.9.9 0 0 1-1.3-1.300L9.5 5.3"/>`,
  send: svg`<path d="M8 13V3.500M4 7.200L8 3.200l4 4"/>`,
  down: svg`<path d="M8 3v9.500M4 8.800l4 4 4-4"/>`,
  shield: svg`<path d="M8 2.300l5 1.700v4c0 3-2.2 4.9-5 5.9-2.8-1-5-2.9-5-5.900V4z"/>`,
  plus: svg`<path d="M8 3v10M3 8h10"/>`
}

export type IconName = keyof typeof PATHS

export function icon (name: IconName, extra = ''): TemplateResult {
  return html`<svg class="icon ${extra}" viewBox="0 0 16 16" aria-hidden="true">${PATHS[name]}</svg>`
}

export const spinner = html`<svg class="icon spinner" viewBox="0 0 16 16" aria-hidden="true">${svg`<circle cx="8" cy="8" r="5.5"/>`}</svg>`

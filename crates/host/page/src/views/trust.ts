// Trust in a folder: what its own settings add, and the button that gives or ends it.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import type { FolderTrust } from '../contract'
import { visible } from '../text/visible'

/** Entries of a kind that are shown. */
const SHOWN = 20

function kinds ({ adds }: FolderTrust): [string, string, string[]][] {
  const all: [string, string, string[]][] = [['hook', 'Hooks that run commands', adds.hooks], ['server', 'Servers that are started', adds.servers], ['allow rule', 'Allowed without asking', adds.allow], ['other setting', 'Other settings', adds.other]]
  return all.filter(([, , entries]) => entries.length)
}

/** What the folder's settings have, in a few words. */
export function trustSummary (trust: FolderTrust | null): string {
  if (!trust) return ''
  const parts = kinds(trust).map(([one, , entries]) => `${entries.length} ${one}${entries.length === 1 ? '' : 's'}`)
  return parts.length ? `adds ${parts.join(', ')}` : 'it has no settings of its own now'
}

/** The section of the side panel. */
export function trustSection (app: App, folder: string, trusted: boolean): TemplateResult {
  const trust = app.trustOf(folder)
  const found = trust ? kinds(trust) : []
  const state = trusted ? 'Trusted: its own settings, hooks and servers count.' : 'Not trusted: its own settings, hooks and servers do not count.'
  return html`<section><h2>Folder</h2><p class="path-line">${visible(folder)}</p><p class="hint">${state}</p>
    ${found.length ? html`<details class="trust-adds"><summary>${trusted ? 'What counts' : 'What trust adds'}</summary><dl>${found.map(([, name, entries]) => html`<dt>${name}</dt>${entries.slice(0, SHOWN).map(entry => html`<dd><code>${visible(entry)}</code></dd>`)}${entries.length > SHOWN ? html`<dd class="hint">and ${entries.length - SHOWN} more</dd>` : nothing}`)}</dl></details>`
      : trust ? html`<p class="hint">It has no settings of its own now.</p>` : nothing}
    <button type="button" class="small" @click=${() => app.setTrust(folder, !trusted)}>${trusted ? 'End trust' : 'Trust this folder'}</button></section>`
}

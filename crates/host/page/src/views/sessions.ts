// The list of sessions, with search and the form for a new one.

import { html, nothing, type TemplateResult } from 'lit-html'
import { ref } from 'lit-html/directives/ref.js'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from '../app'
import type { Mode, Session, SessionState } from '../contract'
import { MODE_NAMES } from '../conversation/host_events'
import { store, stored } from '../storage'
import { ago, baseName, cost, hue } from '../text/format'
import { visible } from '../text/visible'
import { MODES } from './composer'
import { icon, spinner } from './icons'
import { stateBadge } from './session'

export function sessionsPage (app: App): TemplateResult {
  const { search } = app
  const all = app.shownSessions()
  const groups = new Map<string, Session[]>()
  for (const session of all) groups.set(session.folder, [...groups.get(session.folder) ?? [], session])
  return html`<main class="page sessions">
    <div class="page-head"><h1 class="unseen">Sessions</h1>
      <label class="search">${icon('search')}<input type="search" aria-label="Search sessions" placeholder="Search titles and messages" .value=${search.words} @input=${(event: Event) => typedWords(app, (event.target as HTMLInputElement).value)}></label>
      <label class="check"><input type="checkbox" .checked=${search.archived} @change=${(event: Event) => { search.archived = (event.target as HTMLInputElement).checked; void app.searchSessions() }}>Archived</label>
      ${filters(app)}
      <button type="button" class="primary" aria-expanded=${app.creating.open ? 'true' : 'false'} @click=${() => openNew(app)}>${icon('plus')}New session</button>
    </div>
    ${app.creating.open ? newSession(app) : nothing}
    ${search.loading && !all.length ? html`<p class="empty">${spinner} Searching…</p>` : nothing}
    <div class="session-list" role="list" aria-label="Sessions" aria-busy=${app.sessionsLoaded ? 'false' : 'true'}>
      ${repeat(groups, ([folder]) => folder, ([folder, sessions]) => html`
        <p class="folder-head" role="presentation"><span class="folder-chip hue-${hue(folder)}">${visible(folder)}</span></p>
        ${repeat(sessions, session => session.id, session => row(app, session))}`)}
    </div>
    ${all.length || !app.sessionsLoaded || search.loading ? nothing : emptyList(app)}
    ${app.nextPage ? html`<button type="button" class="more-items" @click=${() => app.moreSessions()}>Show more</button>` : nothing}
  </main>`
}

const STATES: [SessionState, string][] = [
  ['waiting', 'Waiting for you'], ['running', 'Running'], ['interrupted', 'Interrupted'], ['failed', 'Failed'], ['elsewhere', 'Open elsewhere'], ['resting', 'Resting']
]

/** Which sessions the list shows. */
function filters (app: App) {
  const { search } = app
  const folders = [...new Set([...app.sessions.values()].map(session => session.folder))].sort()
  const set = (change: Partial<typeof search>) => { Object.assign(search, change); void app.searchSessions() }
  const value = (event: Event) => (event.target as HTMLSelectElement).value
  return html`${folders.length > 1 || search.folder ? html`<select class="compact" aria-label="Show sessions of" @change=${(event: Event) => set({ folder: value(event) })}>
      <option value="" .selected=${!search.folder}>All folders</option>${folders.map(folder => html`<option value=${folder} .selected=${folder === search.folder}>${visible(baseName(folder))}</option>`)}</select>` : nothing}
    <select class="compact" aria-label="Show sessions that are" @change=${(event: Event) => set({ state: value(event) as SessionState | '' })}>
      <option value="" .selected=${!search.state}>In any state</option>${STATES.map(([state, name]) => html`<option value=${state} .selected=${state === search.state}>${name}</option>`)}</select>`
}

function emptyList (app: App): TemplateResult {
  if (app.search.results) return html`<p class="empty">Nothing found.</p>`
  return html`<div class="empty"><p>No sessions yet in ${(app.me?.roots ?? []).map(root => baseName(root)).join(', ') || 'this folder'}.</p><p class="hint">Sessions of the terminal appear here too.</p></div>`
}

let searchTimer: number | undefined

function typedWords (app: App, words: string) {
  app.search.words = words.trim()
  window.clearTimeout(searchTimer)
  searchTimer = window.setTimeout(() => { void app.searchSessions() }, 150)
}

function row (app: App, session: Session): TemplateResult {
  const title = session.title || 'New session'
  return html`<div class="session-row ${session.state}" role="listitem" aria-label=${title}>
    <a href="/s/${session.id}">
      <span class="row-title">${visible(title)}</span>
      <span class="row-badges">${session.open_requests ? html`<span class="badge waiting">${icon('clock')}${session.open_requests === 1 ? 'Waiting for you' : `${session.open_requests} wait for you`}</span>` : stateBadge(session)}${session.queued ? html`<span class="badge">${session.queued} queued</span>` : nothing}${session.origin === 'terminal' && session.state !== 'elsewhere' ? html`<span class="badge quiet">terminal</span>` : nothing}${session.archived ? html`<span class="badge quiet">archived</span>` : nothing}</span>
      <span class="row-facts"><span>${session.cost_usd ? cost(session.cost_usd) : ''}</span><time datetime=${new Date(session.touched_at).toISOString()}>${ago(session.touched_at)}</time></span>
      ${(session.hits ?? []).slice(0, 2).map(hit => html`<span class="hit">${visible(hit.text.slice(0, 240))}</span>`)}
    </a>
    <details class="menu"><summary class="icon-button" aria-label="More about ${title}">${icon('more')}</summary><div class="menu-items">
      <button type="button" @click=${() => app.openDialog({ kind: 'rename', session: session.id })}>Rename</button>
      <button type="button" @click=${() => app.patchSession(session.id, { archived: !session.archived })}>${session.archived ? 'Unarchive' : 'Archive'}</button>
      <button type="button" class="danger" @click=${() => app.openDialog({ kind: 'delete', session: session.id })}>Delete</button></div></details>
  </div>`
}

// --- a new session

export function openNew (app: App) {
  const roots = app.me?.roots ?? []
  const last = stored('folder')
  app.creating.open = !app.creating.open
  app.creating.error = null
  if (!app.creating.folder) app.creating.folder = last && roots.some(root => last === root || last.startsWith(`${root}/`)) ? last : roots[0] ?? ''
  app.changed()
  if (app.creating.open) requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector<HTMLElement>('.new-session textarea')?.focus()))
}

function newSession (app: App): TemplateResult {
  const { creating } = app
  const submit = (event?: Event) => {
    event?.preventDefault()
    const field = document.querySelector<HTMLTextAreaElement>('.new-session textarea')
    void app.createSession(field?.value ?? '')
  }
  const start = () => { submit() }
  const setMode = (event: Event) => {
    const select = event.target as HTMLSelectElement
    const mode = select.value as Mode
    const apply = () => { creating.mode = mode; app.closeDialog() }
    if (mode !== 'bypassPermissions') return apply()
    select.value = creating.mode
    app.openDialog({ kind: 'bypass', session: null, folder: creating.folder, confirm: apply })
  }
  return html`<section class="new-session" aria-label="New session"><form @submit=${submit}>
    <textarea aria-label="Message" rows="3" placeholder="What should be done?" ${ref(element => restoreDraft(element as HTMLTextAreaElement | undefined))}
      @input=${(event: Event) => store('draft:new', (event.target as HTMLTextAreaElement).value)}
      @keydown=${(event: KeyboardEvent) => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); start() } }}></textarea>
    <div class="new-bar">
      ${folderField(app)}
      <label class="field-inline"><span class="unseen">Mode</span><select class="compact" aria-label="Mode" @change=${setMode}>${MODES.map(mode => html`<option value=${mode} .selected=${mode === creating.mode}>${MODE_NAMES[mode]}</option>`)}</select></label>
      <span class="spacer"></span>
      <button type="button" class="quiet" @click=${() => openNew(app)}>Cancel</button>
      <button type="submit" class="primary" ?disabled=${creating.sending}>${creating.sending ? spinner : nothing}Start</button>
    </div>
    ${creating.error ? html`<p class="card-error" role="alert">${creating.error}</p>` : nothing}
  </form></section>`
}

const restored = new WeakSet<HTMLTextAreaElement>()

function restoreDraft (element: HTMLTextAreaElement | undefined) {
  if (!element || restored.has(element)) return
  restored.add(element)
  element.value = stored('draft:new') ?? ''
}

function folderField (app: App): TemplateResult {
  const { creating } = app
  const suggestions = creating.suggestions ?? []
  const pick = (path: string) => {
    creating.folder = path
    creating.suggestions = null
    app.changed()
  }
  const keyDown = (event: KeyboardEvent) => {
    if (!suggestions.length) return
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      creating.selected = (creating.selected + (event.key === 'ArrowDown' ? 1 : -1) + suggestions.length) % suggestions.length
      app.changed()
    } else if ((event.key === 'Enter' || event.key === 'Tab') && creating.selected >= 0) {
      event.preventDefault()
      pick(suggestions[creating.selected]!)
    } else if (event.key === 'Escape') {
      event.stopPropagation()
      creating.suggestions = null
      app.changed()
    }
  }
  return html`<div class="folder-field">
    <input type="text" role="combobox" aria-label="Folder" aria-expanded=${suggestions.length ? 'true' : 'false'} aria-controls="folders" aria-autocomplete="list" spellcheck="false" autocomplete="off"
      .value=${creating.folder} @focus=${() => app.suggestFolders(creating.folder)} @keydown=${keyDown}
      @blur=${() => setTimeout(() => { creating.suggestions = null; app.changed() }, 150)}
      @input=${(event: Event) => { creating.folder = (event.target as HTMLInputElement).value; void app.suggestFolders(creating.folder) }}>
    <ul id="folders" class="suggestions" role="listbox" aria-label="Folders" ?hidden=${!suggestions.length}>${suggestions.map((path, index) => html`<li role="option" aria-selected=${index === creating.selected ? 'true' : 'false'} @mousedown=${(event: Event) => { event.preventDefault(); pick(path) }}>${visible(path)}</li>`)}</ul>
  </div>`
}

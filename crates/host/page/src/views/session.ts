// The page of one session.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import type { Session } from '../contract'
import type { SessionStore } from '../session_store'
import { ago, hue } from '../text/format'
import { visible, visibleText } from '../text/visible'
import { composer } from './composer'
import { details } from './details'
import { icon, spinner } from './icons'
import { log } from './log'
import { scrollButton, scrolled } from './scroll'

export function sessionPage (app: App, id: string): TemplateResult {
  const store = app.stores.get(id)
  const known = app.sessions.get(id)
  if (store?.error) return html`<main class="page"><h1>Not found</h1><p role="alert">${store.error}</p><p><a href="/">All sessions</a></p></main>`
  if (!store || !known) return html`<main class="page loading" aria-busy="true"><p>${spinner} Loading…</p></main>`
  const { conversation } = store
  const session: Session = { ...known, state: conversation.state ?? known.state, mode: conversation.liveMode ?? conversation.mode ?? known.mode, model: conversation.model ?? known.model }
  return html`<div class="session ${store.showDetails ? 'show-details' : ''}">
    ${recent(app, id)}
    <main class="session-main">
      ${head(app, store, session)}
      <div class="scroll" tabindex="-1" @scroll=${(event: Event) => scrolled(app, event.target as HTMLElement)}>
        <div class="column">${conversation.items.length || conversation.live.size || session.state !== 'resting' ? log(app, store, session) : empty(store, session, app)}</div>
      </div>
      ${scrollButton()}
      <div class="dock"><div class="column">${composer(app, store, session)}</div></div>
    </main>
    ${details(app, store, session)}
  </div>`
}

function empty (store: SessionStore, session: Session, app: App): TemplateResult {
  if (session.head > 0 && !store.conversation.last) return html`<p class="empty">${spinner}</p>`
  return html`${log(app, store, session)}<p class="empty">Nothing was said yet. Type <kbd>@</kbd> for files, <kbd>/</kbd> for commands.</p>`
}

function head (app: App, store: SessionStore, session: Session): TemplateResult {
  return html`<header class="session-head">
    <div class="session-title"><h1 title=${visibleText(session.title ?? '')}>${visible(session.title || 'New session')}</h1>
      <p><span class="folder-chip hue-${hue(session.folder)}" title=${session.folder}>${visible(session.folder)}</span>${stateBadge(session)}${session.parent ? html`<a href="/s/${session.parent}">${icon('fork')}fork</a>` : nothing}</p></div>
    <button type="button" class="icon-button" aria-label="Show details" aria-expanded=${store.showDetails !== matchMedia('(min-width: 1080px)').matches ? 'true' : 'false'} @click=${() => { store.showDetails = !store.showDetails; app.changed() }}>${icon('panel')}</button>
    <details class="menu"><summary class="icon-button" aria-label="More">${icon('more')}</summary>
      <div class="menu-items">
        <button type="button" @click=${() => app.openDialog({ kind: 'rename', session: session.id })}>Rename</button>
        <button type="button" @click=${() => app.fork(session.id, null)}>Fork</button>
        <a href="/v1/sessions/${session.id}/export?format=md" download data-native>Export as Markdown</a>
        <a href="/v1/sessions/${session.id}/export?format=html" download data-native>Export as HTML</a>
        <a href="/v1/sessions/${session.id}/export?format=jsonl" download data-native>Export as JSON lines</a>
        <button type="button" @click=${() => app.patchSession(session.id, { archived: !session.archived })}>${session.archived ? 'Unarchive' : 'Archive'}</button>
        <button type="button" class="danger" @click=${() => app.openDialog({ kind: 'delete', session: session.id })}>Delete</button>
      </div></details>
  </header>`
}

const STATES: Record<Session['state'], string> = {
  resting: '', running: 'Running', waiting: 'Waiting for you', interrupted: 'Interrupted', failed: 'Failed', elsewhere: 'In a terminal'
}

export function stateBadge (session: Pick<Session, 'state' | 'mode'>): unknown {
  const word = STATES[session.state]
  return html`${word ? html`<span class="badge ${session.state}">${session.state === 'running' ? spinner : nothing}${word}</span>` : nothing}${session.mode === 'bypassPermissions' ? html`<span class="badge bypass">Bypass</span>` : nothing}`
}

/** The last sessions beside the conversation, on wide screens. */
function recent (app: App, current: string): TemplateResult {
  const sessions = [...app.sessions.values()].filter(session => !session.archived).sort((a, b) => b.touched_at - a.touched_at).slice(0, 25)
  return html`<nav class="recent" aria-label="Recent sessions">
    <a class="new-link" href="/" data-new>${icon('plus')}New session</a>
    ${sessions.map(session => html`<a href="/s/${session.id}" class=${session.id === current ? 'current' : ''} aria-current=${session.id === current ? 'page' : nothing}>
      <span class="recent-dot ${session.state} hue-${hue(session.folder)}"></span><span class="recent-title">${visible(session.title || 'New session')}</span><span class="hint">${ago(session.touched_at)}</span></a>`)}
  </nav>`
}

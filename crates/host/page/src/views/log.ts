// The conversation: prompts, replies, tool calls and cards in the order in which they came.

import { html, nothing, type TemplateResult } from 'lit-html'
import { guard } from 'lit-html/directives/guard.js'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from '../app'
import type { Session } from '../contract'
import { liveBlocks } from '../conversation/live'
import type { Conversation, Item, LiveBlock, Tool } from '../conversation/state'
import { newTool } from '../conversation/items'
import { WINDOW, type SessionStore } from '../session_store'
import { highlighterVersion } from '../text/code'
import { clock, cost, duration, plural } from '../text/format'
import { GrowingMarkdown, markdown } from '../text/markdown'
import { visible } from '../text/visible'
import { requestCard, requestOf } from './card'
import { foldVersion, isOpen, toggle } from './fold'
import { icon, spinner } from './icons'
import { toolCard } from './tool'

interface LogContext { app: App, store: SessionStore, session: Session, conversation: Conversation, waiting: Set<string>, lastCard: string | null, now: number }

export function log (app: App, store: SessionStore, session: Session): TemplateResult {
  const { conversation } = store
  const waiting = new Set([...conversation.cards.values()].filter(card => card.state === 'open').map(card => card.request.tool_use_id))
  const lastCard = conversation.items.findLast(item => item.kind === 'card')
  const context: LogContext = { app, store, session, conversation, waiting, lastCard: lastCard?.kind === 'card' ? lastCard.id : null, now: Date.now() }
  const { items } = conversation
  const end = store.end ?? items.length
  const start = Math.max(0, Math.min(store.start ?? items.length - WINDOW, end))
  return html`<div class="log" role="log" aria-label="Conversation" aria-live="polite" aria-busy=${liveBlocks(conversation, null).length ? 'true' : 'false'}>
    ${start > 0 || store.hasOlder ? earlier(app, store, start) : nothing}
    ${itemList(items.slice(start, end), context)}
    ${end < items.length ? html`<button type="button" class="more-items" @click=${() => { store.end = end + WINDOW >= items.length ? null : end + WINDOW; app.changed() }}>Show later messages</button>` : nothing}
    ${end === items.length ? html`${liveList(null, context)}${strayCards(context)}${working(context)}` : nothing}
  </div>`
}

function earlier (app: App, store: SessionStore, start: number): TemplateResult {
  const more = () => {
    if (start > 0) {
      store.start = Math.max(0, start - WINDOW)
      return app.changed()
    }
    store.start = 0
    void store.loadOlder().then(() => { store.start = Math.max(0, (store.start ?? 0) - WINDOW); app.changed() }, error => app.fail(error))
  }
  const first = () => {
    const show = () => { store.start = 0; store.end = Math.min(WINDOW, store.conversation.items.length); app.changed(); requestAnimationFrame(() => document.querySelector('.scroll')?.scrollTo(0, 0)) }
    void store.loadOlder(true).then(show, error => app.fail(error))
  }
  return html`<p class="earlier">${store.loadingOlder ? html`${spinner} Loading…` : html`<button type="button" data-earlier @click=${more}>Show earlier messages</button><button type="button" @click=${first}>Jump to the start</button>`}</p>`
}

function itemList (items: Item[], context: LogContext) {
  return repeat(items, item => item.key, item => guard(dependencies(item, context), () => renderItem(item, context)))
}

/** What the drawing of an item depends on; it is kept while none of this changes. */
function dependencies (item: Item, { app, conversation, waiting, session, lastCard, now }: LogContext): unknown[] {
  const common = [item, highlighterVersion(), session.id]
  if (item.kind === 'tool') {
    const tool = conversation.tools.get(item.id)
    const children = conversation.children.get(item.id)
    const running = tool?.state === 'running' ? Math.floor(now / 1000) : 0
    const inner = children ? [conversation.tools, conversation.live.get(item.id)] : []
    return [...common, tool, waiting.has(item.id), foldVersion(), running, children, ...inner]
  }
  if (item.kind === 'card') {
    const open = conversation.cards.get(item.id)?.state === 'open'
    return [...common, conversation.cards.get(item.id), app.requests.get(item.id), app.answers.get(item.id), item.id === lastCard, open ? Math.floor(now / 30_000) : 0, open ? app.sessions.get(session.id)?.trusted : 0, open ? app.trustVersion(app.requests.get(item.id)?.folder ?? '') : 0, open ? foldVersion() : 0, open ? app.fileVersion(item.id) : 0]
  }
  return [...common, session.state === 'running' || session.state === 'waiting', item.kind === 'thinking' || item.kind === 'prompt' ? foldVersion() : 0]
}

function renderItem (item: Item, context: LogContext): unknown {
  const { app, conversation, session, store, waiting, now } = context
  const content = (() => {
    switch (item.kind) {
      case 'prompt': return prompt(item, context)
      case 'text': return html`<article class="message assistant" aria-label="Assistant">${markdown(item.text)}${messageActions(context, item.uuid, 'assistant')}</article>`
      case 'thinking': return thinking(app, item.key, item.text, false)
      case 'tool': {
        const tool = conversation.tools.get(item.id)
        if (!tool) return nothing
        const children = conversation.children.get(item.id) ?? []
        return toolCard(tool, {
          app, session: store, folder: session.folder, waiting: waiting.has(item.id), childCount: children.length + liveBlocks(conversation, item.id).length, now,
          children: id => html`${itemList(conversation.children.get(id) ?? [], context)}${liveList(id, context)}`
        })
      }
      case 'card': {
        const card = conversation.cards.get(item.id)
        if (!card) return nothing
        return requestCard(requestOf(app, card, session.id, session.folder), { app, place: 'session', outcome: card.outcome, landmark: card.state === 'open' || item.id === context.lastCard, now })
      }
      case 'notice': return html`<p class="notice ${item.level}">${item.level === 'info' ? nothing : icon('clock')}<span>${visible(item.text)}</span>${item.session ? html` <a href="/s/${item.session}">Open the fork</a>` : nothing}</p>`
      case 'turn_end': return html`<p class="turn-end"><span>${duration(item.durationMs)}</span>${item.turns > 1 ? html`<span>${plural(item.turns, 'model call')}</span>` : nothing}${item.costUsd > 0 ? html`<span>${cost(item.costUsd)}</span>` : nothing}</p>`
    }
  })()
  return html`<div class="item item-${item.kind} ${item.dropped ? 'dropped' : ''}">${content}</div>`
}

function prompt (item: Extract<Item, { kind: 'prompt' }>, context: LogContext): TemplateResult {
  const long = item.text.length > 4000 || item.text.split('\n').length > 30
  const open = isOpen(item.key)
  const text = long && !open ? item.text.split('\n').slice(0, 20).join('\n').slice(0, 3000) : item.text
  return html`<article class="message you" aria-label="You">
    <div class="bubble">
      ${item.pictures.map(picture => html`<img class="picture" src=${picture} alt="Attached picture">`)}
      ${item.uploads.map(name => html`<span class="file-chip">${icon('clip')}${visible(name)}</span>`)}
      <div class="prompt-text">${visible(text)}</div>
      ${long ? html`<button type="button" class="fold" aria-expanded=${open ? 'true' : 'false'} @click=${() => toggle(context.app, item.key)}>${open ? 'Show less' : 'Show all'}</button>` : nothing}
    </div>
    ${messageActions(context, item.uuid, 'you', item.at)}
  </article>`
}

function messageActions ({ app, store, session }: LogContext, uuid: string, who: 'you' | 'assistant', at = 0) {
  if (!uuid || session.state === 'elsewhere') return nothing
  const busy = session.state === 'running' || session.state === 'waiting'
  const rewind = () => {
    app.openDialog({ kind: 'rewind', session: store.id, to: uuid, files: true, conversation: true, changes: null, error: null })
    previewRewind(app)
  }
  return html`<p class="message-actions">
    ${at ? html`<time datetime=${new Date(at).toISOString()}>${clock(at)}</time>` : nothing}
    <button type="button" @click=${() => app.fork(store.id, uuid)}>${icon('fork')}Fork from here</button>
    ${who === 'you' ? html`<button type="button" ?disabled=${busy} title=${busy ? 'Possible when the turn has ended' : ''} @click=${rewind}>${icon('rewind')}Rewind to here</button>` : nothing}
  </p>`
}

/** Asks the host what a rewind would change, without changing anything. */
export function previewRewind (app: App) {
  const dialog = app.dialog
  if (dialog?.kind !== 'rewind') return
  app.rewind(dialog.session, dialog.to, true, true, true).then(
    result => { if (app.dialog?.kind === 'rewind') app.openDialog({ ...app.dialog, changes: result.files, error: null }) },
    (error: Error) => { if (app.dialog?.kind === 'rewind') app.openDialog({ ...app.dialog, error: error.message }) }
  )
}

function thinking (app: App, key: string, text: string, streaming: boolean): TemplateResult {
  const open = isOpen(key)
  const lines = text.trim().split('\n')
  return html`<div class="thinking ${streaming ? 'streaming' : ''}">
    <button type="button" aria-expanded=${open ? 'true' : 'false'} @click=${() => toggle(app, key)}>${icon('chevron', open ? 'turned' : '')}${streaming ? 'Thinking…' : 'Thought'}${open ? nothing : html`<span class="thinking-line">${visible((streaming ? lines.at(-1)! : lines[0]!).slice(0, 140))}</span>`}</button>
    ${open ? html`<div class="thinking-text">${visible(text)}</div>` : nothing}
  </div>`
}

const growing = new Map<string, GrowingMarkdown>()

function liveList (parent: string | null, context: LogContext) {
  const blocks = liveBlocks(context.conversation, parent)
  if (!blocks.length && parent === null) growing.clear()
  return repeat(blocks, block => block.key, block => html`<div class="item item-live">${liveBlock(block, context)}</div>`)
}

function liveBlock (block: LiveBlock, context: LogContext): unknown {
  const { app, store, session, now } = context
  if (block.kind === 'thinking') return block.text.trim() ? thinking(app, block.key, block.text, true) : nothing
  if (block.kind === 'text') {
    if (!block.text.trim()) return nothing
    let cache = growing.get(block.key)
    if (!cache) growing.set(block.key, cache = new GrowingMarkdown())
    return html`<article class="message assistant streaming" aria-label="Assistant">${markdown(block.text, cache)}</article>`
  }
  const tool: Tool = { ...newTool(block.toolId, block.name, null), partial: block.text }
  return toolCard(tool, { app, session: store, folder: session.folder, waiting: false, children: () => nothing, childCount: 0, now })
}

/** Open requests whose event is older than what is loaded. */
function strayCards ({ app, conversation, session, now }: LogContext) {
  return app.openRequests()
    .filter(request => request.session === session.id && conversation.first > 1 && request.opened_at <= conversation.firstAt && !conversation.cards.has(request.id))
    .map(request => html`<div class="item item-card">${requestCard(request, { app, place: 'session', outcome: null, landmark: true, now })}</div>`)
}

function working ({ conversation, session, store, now }: LogContext): unknown {
  const state = conversation.state ?? session.state
  if (state === 'waiting') return html`<p class="working waiting">${icon('clock')}<span>Waiting for your answer</span></p>`
  if (state !== 'running') return nothing
  const since = conversation.turnStartedAt
  const elapsed = since && now - since > 1500 ? duration(now - since).replace(/\.\d s/, ' s') : ''
  return html`<p class="working">${spinner}<span>${store.stopAsked ? 'Stopping…' : activity(conversation)}</span><span class="elapsed">${elapsed}</span></p>`
}

function activity (conversation: Conversation): string {
  if (conversation.status === 'compacting') return 'Summarizing the conversation'
  if (conversation.status?.startsWith('retry')) return 'The model does not answer; trying again'
  const running = [...conversation.tools.values()].filter(tool => tool.state === 'running' && tool.parent === null)
  if (running.length === 1) return `Running ${running[0]!.name}`
  if (running.length > 1) return `Running ${running.length} tools`
  const live = liveBlocks(conversation, null).at(-1)
  if (live?.kind === 'thinking') return 'Thinking'
  if (live?.kind === 'text') return 'Writing'
  return 'Working'
}

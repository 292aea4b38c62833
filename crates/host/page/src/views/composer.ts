// Where messages are written: text, attachments, `@` files and `/` commands, model, mode, and the queue above.

import { html, nothing, type TemplateResult } from 'lit-html'
import { keyed } from 'lit-html/directives/keyed.js'
import { ref } from 'lit-html/directives/ref.js'
import { SHOW_SENDING_MS, type App } from '../app'
import type { Mode, Priority, Session } from '../contract'
import { MODE_NAMES } from '../conversation/host_events'
import type { SessionStore } from '../session_store'
import { baseName, bytes, hue } from '../text/format'
import { visible } from '../text/visible'
import { icon, spinner } from './icons'

const PRIORITIES: Record<Priority, string> = { later: 'After this turn', next: 'At the next step', now: 'Now, interrupting' }

/** The modes that a person can choose. */
export const MODES: Mode[] = ['default', 'acceptEdits', 'plan', 'bypassPermissions']

export function composer (app: App, store: SessionStore, session: Session): TemplateResult {
  if (session.state === 'elsewhere') {
    return html`<div class="composer-area"><p class="elsewhere-bar" role="status">${icon('terminal')}This session is open in a terminal. It can be used here as soon as it is closed there.</p></div>`
  }
  const busy = session.state === 'running' || session.state === 'waiting'
  return html`<div class="composer-area">
    ${interrupted(app, store, session)}
    ${queue(app, store)}
    <form class="composer ${busy ? 'busy' : ''} ${session.mode === 'bypassPermissions' ? 'bypass' : ''}" @submit=${(event: Event) => { event.preventDefault(); submit(app, store, busy) }}
      @dragover=${(event: DragEvent) => event.preventDefault()} @drop=${(event: DragEvent) => drop(app, store, event)}>
      ${suggestions(app, store)}
      ${attachments(app, store)}
      ${keyed(session.id, html`<textarea name="message" aria-label="Message" rows="1" placeholder=${busy ? 'Add a message to the queue' : 'Message'} enterkeyhint="send"
        aria-autocomplete="list" aria-controls=${store.suggestions ? 'suggestions' : nothing}
        ${ref(element => takeDraft(store, element as HTMLTextAreaElement | undefined))}
        @input=${(event: Event) => typed(app, store, event.target as HTMLTextAreaElement)}
        @keydown=${(event: KeyboardEvent) => keyDown(app, store, event, busy)}
        @paste=${(event: ClipboardEvent) => paste(app, store, event)}></textarea>`)}
      <div class="composer-bar">
        <label class="icon-button" title="Attach files">${icon('clip')}<span class="unseen">Attach files</span><input type="file" multiple class="unseen" @change=${(event: Event) => attach(app, store, event.target as HTMLInputElement)}></label>
        ${modeSelect(app, session)}
        ${modelSelect(app, store, session)}
        ${session.mode === 'bypassPermissions' ? html`<span class="bypass-badge" role="status">Bypass</span>` : nothing}
        <span class="spacer"></span>
        <span class="where folder-chip hue-${hue(session.folder)}" title=${session.folder}>${visible(baseName(session.folder))}</span>
        ${busy ? html`<select class="compact" aria-label="Deliver" @change=${(event: Event) => { store.priority = (event.target as HTMLSelectElement).value as Priority }}>
          ${Object.entries(PRIORITIES).map(([value, name]) => html`<option value=${value} ?selected=${store.priority === value}>${name}</option>`)}
        </select>` : nothing}
        ${busy ? html`<button type="button" class="stop" ?disabled=${store.stopAsked} @click=${() => app.interrupt(store)}>${icon('stop')}<span class="stop-word">Stop</span></button>` : nothing}
        <button type="submit" class="primary send" aria-label="Send" title="Send (Enter)">${icon('send')}</button>
      </div>
    </form>
  </div>`
}

function interrupted (app: App, store: SessionStore, session: Session) {
  if (session.state !== 'interrupted') return nothing
  return html`<div class="interrupted-bar" role="alert" aria-label="Interrupted by a restart">
    <p><b>Interrupted by a restart</b><span>The turn stopped in the middle. What was done is kept.</span></p>
    <button type="button" class="primary" @click=${() => app.continueSession(store.id)}>Continue</button>
  </div>`
}

function queue (app: App, store: SessionStore) {
  const sending = store.outgoing.filter(outgoing => outgoing.error !== null || Date.now() - outgoing.at >= SHOW_SENDING_MS)
  const { queue } = store.conversation
  if (!queue.length && !sending.length) return nothing
  return html`<ul class="queue" role="list" aria-label="Queued messages">
    ${queue.map(queued => html`<li><span class="tag">${queued.contextOnly ? 'context' : QUEUE_WORDS[queued.priority] ?? 'queued'}</span><span class="queued-text">${visible(queued.text.slice(0, 300) || 'Attachment')}</span>
      <button type="button" @click=${() => app.takeBack(store, queued.uuid)}>Take back</button></li>`)}
    ${sending.map(outgoing => html`<li class="sending">${outgoing.error === null ? spinner : icon('cross')}<span class="queued-text">${visible(outgoing.text.slice(0, 300))}</span>
      <span class="hint">${outgoing.error ?? 'sending…'}</span>${outgoing.error === null ? nothing : html`<button type="button" @click=${() => { store.outgoing = store.outgoing.filter(other => other !== outgoing); store.draftToSet = outgoing.text; app.changed() }}>Edit</button>`}</li>`)}
  </ul>`
}

const QUEUE_WORDS: Record<string, string> = { later: 'next turn', next: 'next step', now: 'now' }

function modeSelect (app: App, session: Session): TemplateResult {
  const mode = session.mode ?? 'default'
  const modes = MODES.includes(mode) ? MODES : [...MODES, mode]
  return html`<select class="compact mode ${mode}" aria-label="Mode" .value=${mode} @change=${(event: Event) => {
    const select = event.target as HTMLSelectElement
    const chosen = select.value as Mode
    select.value = mode
    app.setMode(session, chosen)
  }}>${modes.map(value => html`<option value=${value} ?selected=${value === mode}>${MODE_NAMES[value] ?? value}</option>`)}</select>`
}

function modelSelect (app: App, store: SessionStore, session: Session): TemplateResult {
  const running = session.model ?? store.conversation.model ?? ''
  const model = store.models.find(choice => choice.value === running || choice.resolvedModel === running)?.value ?? running
  const choices = store.models.map(choice => ({ value: choice.value, name: choice.displayName || choice.value }))
  if (model && !choices.some(choice => choice.value === model)) choices.unshift({ value: model, name: modelName(model) })
  if (!choices.length) choices.push({ value: '', name: 'Default model' })
  return html`<select class="compact model" aria-label="Model" @change=${(event: Event) => app.setModel(session, (event.target as HTMLSelectElement).value)}>
    ${choices.map(choice => html`<option value=${choice.value} .selected=${choice.value === model}>${visible(choice.name)}</option>`)}</select>`
}

function modelName (model: string): string {
  return model.replace(/^claude-/, '').replace(/-\d{8}$/, '')
}

// --- the text field

const fields = new WeakMap<HTMLTextAreaElement, string>()

function takeDraft (store: SessionStore, element: HTMLTextAreaElement | undefined) {
  if (!element) return
  if (!fields.has(element)) {
    fields.set(element, store.id)
    queueMicrotask(() => grow(element))
  }
  if (store.draftToSet === null) return
  element.value = store.draftToSet
  store.saveDraft(store.draftToSet)
  store.draftToSet = null
  queueMicrotask(() => grow(element))
}

function grow (element: HTMLTextAreaElement) {
  element.style.height = 'auto'
  element.style.height = `${Math.min(element.scrollHeight, 240)}px`
}

function submit (app: App, store: SessionStore, busy: boolean) {
  const field = document.querySelector<HTMLTextAreaElement>('textarea[name=message]')
  const text = field?.value ?? ''
  if (!field || (!text.trim() && !store.attachments.some(attachment => attachment.upload))) return
  if (store.attachments.some(attachment => !attachment.upload && !attachment.error)) return app.say('Wait for the uploads to end.')
  store.attachments = store.attachments.filter(attachment => attachment.upload)
  void app.send(store, text, busy ? store.priority : 'later')
  field.value = ''
  store.priority = 'later'
  store.suggestions = null
  grow(field)
  field.focus()
}

function keyDown (app: App, store: SessionStore, event: KeyboardEvent, busy: boolean) {
  const field = event.target as HTMLTextAreaElement
  const open = store.suggestions
  if (open?.items.length) {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      open.selected = (open.selected + (event.key === 'ArrowDown' ? 1 : -1) + open.items.length) % open.items.length
      event.preventDefault()
      return app.changed()
    }
    if (event.key === 'Tab' || event.key === 'Enter') {
      event.preventDefault()
      return choose(app, store, field, open.items[open.selected]!)
    }
    if (event.key === 'Escape') {
      event.stopPropagation()
      store.suggestions = null
      return app.changed()
    }
  }
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault()
    if (event.ctrlKey || event.metaKey) store.priority = busy ? 'next' : 'later'
    submit(app, store, busy)
  }
}

let suggestTimer: number | undefined

function typed (app: App, store: SessionStore, field: HTMLTextAreaElement) {
  grow(field)
  store.saveDraft(field.value)
  const caret = field.selectionStart
  const before = field.value.slice(0, caret)
  const command = /^\/([\w:-]*)$/.exec(before)
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before)
  window.clearTimeout(suggestTimer)
  if (command) {
    const items = store.conversation.commands.filter(name => name.startsWith(command[1]!)).slice(0, 10)
    store.suggestions = items.length ? { kind: 'command', items, selected: 0, from: 0, to: caret } : null
    return app.changed()
  }
  if (file) {
    const from = caret - file[1]!.length
    suggestTimer = window.setTimeout(() => { void suggestFiles(app, store, file[1]!, from, caret) }, 120)
    return
  }
  if (store.suggestions) {
    store.suggestions = null
    app.changed()
  }
}

async function suggestFiles (app: App, store: SessionStore, query: string, from: number, to: number) {
  try {
    const { suggestions } = await app.control<{ suggestions: { path: string }[] }>(store.id, { subtype: 'file_suggestions', query })
    const items = suggestions.map(suggestion => suggestion.path).slice(0, 10)
    store.suggestions = items.length ? { kind: 'file', items, selected: 0, from, to } : null
  } catch {
    store.suggestions = null
  }
  app.changed()
}

function choose (app: App, store: SessionStore, field: HTMLTextAreaElement, item: string) {
  const open = store.suggestions
  if (!open) return
  const inserted = open.kind === 'command' ? `/${item} ` : `${item} `
  field.setRangeText(inserted, open.from, field.selectionStart, 'end')
  store.suggestions = null
  store.saveDraft(field.value)
  field.focus()
  app.changed()
}

function suggestions (app: App, store: SessionStore) {
  const open = store.suggestions
  if (!open) return nothing
  const pick = (item: string) => (event: Event) => {
    event.preventDefault()
    const field = document.querySelector<HTMLTextAreaElement>('textarea[name=message]')
    if (field) choose(app, store, field, item)
  }
  return html`<ul class="suggestions" id="suggestions" role="listbox" aria-label=${open.kind === 'file' ? 'Files' : 'Commands'}>
    ${open.items.map((item, index) => html`<li role="option" aria-selected=${index === open.selected ? 'true' : 'false'} @mousedown=${pick(item)}>${open.kind === 'command' ? '/' : ''}${visible(item)}</li>`)}
  </ul>`
}

// --- attachments

function attachments (app: App, store: SessionStore) {
  if (!store.attachments.length) return nothing
  return html`<ul class="attachments" role="list" aria-label="Attachments">${store.attachments.map(attachment => html`<li class=${attachment.error ? 'failed' : ''}>
    ${attachment.preview ? html`<img src=${attachment.preview} alt="">` : icon('file')}
    <span class="attachment-name">${visible(attachment.name)}</span>
    ${attachment.error ? html`<span role="alert" class="hint">${attachment.error}</span>` : html`<span class="hint">${attachment.upload ? bytes(attachment.size) : spinner}</span>`}
    <button type="button" class="icon-button" aria-label="Remove ${attachment.name}" @click=${() => { store.attachments = store.attachments.filter(other => other.key !== attachment.key); app.changed() }}>${icon('cross')}</button>
  </li>`)}</ul>`
}

function attach (app: App, store: SessionStore, input: HTMLInputElement) {
  void app.attach(store, [...input.files ?? []])
  input.value = ''
}

function paste (app: App, store: SessionStore, event: ClipboardEvent) {
  const files = [...event.clipboardData?.files ?? []]
  if (!files.length) return
  event.preventDefault()
  void app.attach(store, files)
}

function drop (app: App, store: SessionStore, event: DragEvent) {
  const files = [...event.dataTransfer?.files ?? []]
  if (!files.length) return
  event.preventDefault()
  void app.attach(store, files)
}

// Dialogs: always allow, bypass, rewind, rename, delete, new device, new key, keyboard.

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { ref } from 'lit-html/directives/ref.js'
import type { App, Dialog } from '../app'
import type { Scope } from '../contract'
import { copyButton } from '../text/code'
import { relativePath } from '../text/format'
import { qrCode } from '../text/qr'
import { visible } from '../text/visible'
import { SCOPE_NAMES } from './card'
import { spinner } from './icons'
import { addKey } from './settings'

export function dialogs (app: App): TemplateResult | typeof nothing {
  const { dialog } = app
  if (!dialog) return nothing
  const { title, content } = parts(app, dialog)
  return html`<dialog class="dialog" aria-label=${title} ${ref(show)} @cancel=${() => app.closeDialog()} @close=${() => { if (app.dialog === dialog) app.closeDialog() }} @click=${(event: MouseEvent) => { if (event.target === event.currentTarget) app.closeDialog() }}>
    <div class="dialog-body"><h2>${title}</h2>${content}</div></dialog>`
}

function show (element: Element | undefined) {
  const dialog = element as HTMLDialogElement | undefined
  if (dialog && !dialog.open) queueMicrotask(() => { if (dialog.isConnected && !dialog.open) dialog.showModal() })
}

function parts (app: App, dialog: Dialog): { title: string, content: TemplateResult } {
  switch (dialog.kind) {
    case 'always': return { title: 'Always allow', content: always(app, dialog) }
    case 'bypass': return { title: 'Bypass permissions', content: bypass(app, dialog) }
    case 'rewind': return { title: 'Rewind', content: rewind(app, dialog) }
    case 'rename': return { title: 'Rename', content: rename(app, dialog) }
    case 'delete': return { title: 'Delete session', content: deletion(app, dialog) }
    case 'device': return { title: 'Add a device', content: device(app, dialog) }
    case 'key': return { title: 'New key', content: key(app, dialog) }
    case 'shortcuts': return { title: 'Keyboard', content: shortcuts(app) }
  }
}

const cancel = (app: App) => html`<button type="button" class="quiet" @click=${() => app.closeDialog()}>Cancel</button>`

function always (app: App, dialog: Extract<Dialog, { kind: 'always' }>): TemplateResult {
  const scopes = app.requests.get(dialog.request)?.scopes ?? []
  const chosen = scopes.find(choice => choice.scope === dialog.chosen)
  const pick = (scope: Scope) => () => app.openDialog({ ...dialog, chosen: scope })
  const allow = () => {
    const card = [...document.querySelectorAll<HTMLElement>('.card')].find(card => card.dataset.card === dialog.request)
    const message = card?.querySelector<HTMLInputElement>('input[name=note]')?.value.trim()
    void app.answer(dialog.request, { decision: 'allow', scope: dialog.chosen as Scope, ...(message ? { message } : {}) })
    app.closeDialog()
  }
  return html`<p class="hint">From now on this is allowed without asking:</p>
    <p class="rule"><code>${visible(chosen?.rule ?? '')}</code></p>
    <fieldset class="choices column-choices"><legend>Where the rule holds</legend>
      ${scopes.map(choice => html`<label class="option"><input type="radio" name="scope" value=${choice.scope} .checked=${choice.scope === dialog.chosen} @change=${pick(choice.scope)}><span>${SCOPE_NAMES[choice.scope]}</span></label>`)}
    </fieldset>
    <div class="actions end">${cancel(app)}<button type="button" class="primary" @click=${allow}>Allow</button></div>`
}

function bypass (app: App, dialog: Extract<Dialog, { kind: 'bypass' }>): TemplateResult {
  return html`<p>Every command and every change in <b class="path-line">${visible(dialog.folder)}</b> runs without asking. Deny rules still hold.</p>
    <p class="hint">It holds for this session alone, and ends by itself after an hour or with the server.</p>
    <div class="actions end">${cancel(app)}<button type="button" class="danger" @click=${dialog.confirm}>Bypass permissions</button></div>`
}

function rewind (app: App, dialog: Extract<Dialog, { kind: 'rewind' }>): TemplateResult {
  const set = (change: Partial<typeof dialog>) => app.openDialog({ ...dialog, ...change })
  const folder = app.sessions.get(dialog.session)?.folder ?? ''
  const apply = () => {
    const { session, to, files, conversation } = dialog
    app.rewind(session, to, files, conversation, false).then(result => {
      app.closeDialog()
      app.mergeSession(result.session)
      const undo = result.undo
      app.say('Rewound. Nothing was deleted.', undo ? { label: 'Undo', run: () => { app.rewind(session, undo, files, conversation, false).then(() => app.say('The rewind was undone.'), error => app.fail(error)) } } : undefined)
    }, (error: Error) => set({ error: error.message }))
  }
  const { changes } = dialog
  return html`<p>The session goes back to before this message.</p>
    <label class="option"><input type="checkbox" .checked=${dialog.conversation} @change=${(event: Event) => set({ conversation: (event.target as HTMLInputElement).checked })}><span>Conversation<span class="option-description">Later messages are left out of what the model sees</span></span></label>
    <label class="option"><input type="checkbox" .checked=${dialog.files} @change=${(event: Event) => set({ files: (event.target as HTMLInputElement).checked })}><span>Files<span class="option-description">Files that the agent edited get their contents of that time</span></span></label>
    ${dialog.error ? html`<p class="card-error" role="alert">${dialog.error}</p>` : changes === null ? html`<p class="hint">${spinner} Looking what would change…</p>`
      : changes.length ? html`<ul class="changes ${dialog.files ? '' : 'off'}" role="list" aria-label="Files that change">${changes.slice(0, 200).map(change => html`<li><span class="tag">${change.change}</span>${visible(relativePath(change.path, folder))}</li>`)}</ul>` : html`<p class="hint">No file would change.</p>`}
    <div class="actions end">${cancel(app)}<button type="button" class="primary" ?disabled=${!dialog.files && !dialog.conversation} @click=${apply}>Rewind</button></div>`
}

function rename (app: App, dialog: Extract<Dialog, { kind: 'rename' }>): TemplateResult {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const title = String(new FormData(event.target as HTMLFormElement).get('title') ?? '').trim()
    app.closeDialog()
    if (title) void app.patchSession(dialog.session, { title })
  }
  return html`<form @submit=${submit}><label class="field"><span>Title</span><input type="text" name="title" aria-label="Title" .value=${app.sessions.get(dialog.session)?.title ?? ''} autocomplete="off" required></label>
    <div class="actions end">${cancel(app)}<button type="submit" class="primary">Rename</button></div></form>`
}

function deletion (app: App, dialog: Extract<Dialog, { kind: 'delete' }>): TemplateResult {
  const session = app.sessions.get(dialog.session) ?? app.search.results?.find(found => found.id === dialog.session)
  return html`<p>“${visible(session?.title || 'This session')}” and its transcript are deleted from the disk. Files of the project stay. This cannot be undone.</p>
    <div class="actions end">${cancel(app)}<button type="button" class="danger" @click=${() => { app.closeDialog(); void app.deleteSession(dialog.session) }}>Delete</button></div>`
}

function device (app: App, dialog: Extract<Dialog, { kind: 'device' }>): TemplateResult {
  return html`${dialog.error ? html`<p class="card-error" role="alert">${dialog.error}</p>` : dialog.link === null ? html`<p>${spinner}</p>`
    : html`<p>Open this link on the other device. It works once, for ten minutes.</p><p class="secret"><code>${dialog.link}</code>${copyButton(dialog.link)}</p>${qrPicture(dialog.link)}
      ${/^(127\.|localhost|\[::1)/.test(location.hostname) ? html`<p class="hint">This address is reachable from this machine only. Start the server with --listen and --public-url for others.</p>` : nothing}`}
    <div class="actions end"><button type="button" class="primary" @click=${() => app.closeDialog()}>Done</button></div>`
}

function qrPicture (link: string) {
  const rows = qrCode(link)
  if (!rows) return nothing
  const path = rows.flatMap((row, y) => row.flatMap((dark, x) => dark ? [`M${x} ${y}h1v1h-1z`] : [])).join('')
  return html`<svg class="qr" role="img" aria-label="QR code of the link" viewBox="-3 -3 ${rows.length + 6} ${rows.length + 6}" shape-rendering="crispEdges">${svg`<path d=${path}/>`}</svg>`
}

function key (app: App, dialog: Extract<Dialog, { kind: 'key' }>): TemplateResult {
  if (dialog.secret !== null) {
    return html`<p>This key is shown once. Keep it where your program reads its secrets.</p><p class="secret"><code>${dialog.secret}</code>${copyButton(dialog.secret)}</p>
      <div class="actions end"><button type="button" class="primary" @click=${() => app.closeDialog()}>Done</button></div>`
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const name = String(new FormData(event.target as HTMLFormElement).get('name') ?? '').trim()
    if (name) addKey(app, name)
  }
  return html`<form @submit=${submit}><label class="field"><span>Name</span><input type="text" name="name" aria-label="Name" placeholder="Which program uses it" autocomplete="off" required></label>
    <div class="actions end">${cancel(app)}<button type="submit" class="primary">Make key</button></div></form>`
}

const SHORTCUTS: [string, string][] = [
  ['/', 'Search sessions'], ['n', 'New session'], ['g i', 'Inbox'], ['g s', 'Sessions'], ['j  k', 'Next and previous card'], ['Enter', 'Send'], ['Shift Enter', 'New line'],
  ['Ctrl Enter', 'Send at the next step of the running turn'], ['Esc', 'Stop the turn; asks once'], ['?', 'This list']
]

function shortcuts (app: App): TemplateResult {
  return html`<dl class="shortcuts">${SHORTCUTS.map(([keys, what]) => html`<div><dt>${keys.split(' ').filter(Boolean).map(key => html`<kbd>${key}</kbd> `)}</dt><dd>${what}</dd></div>`)}</dl>
    <div class="actions end"><button type="button" class="primary" @click=${() => app.closeDialog()}>Close</button></div>`
}

// Requests that wait for a person: permission cards here, and what all cards share.

import { html, nothing, type TemplateResult } from 'lit-html'
import { requestTitle, type App } from '../app'
import type { Answer, HostRequest, Scope } from '../contract'
import type { Card, Outcome } from '../conversation/state'
import { highlight } from '../text/code'
import { diffTexts, type Line } from '../text/diff'
import { ago, baseName, clock, hue, relativePath } from '../text/format'
import { visible } from '../text/visible'
import { diffTable } from './diff'
import { icon, spinner } from './icons'
import { elicitationBody, planBody, questionBody } from './question'
import { editedText, inputTable, linesOf } from './tool'
import { trustSummary } from './trust'

export const SCOPE_NAMES: Record<Scope, string> = {
  once: 'Once', session: 'This session', local: 'This folder, only me', project: 'This project', user: 'All my projects'
}

const EDITORS = ['Edit', 'MultiEdit', 'Write', 'NotebookEdit']

/** A request as the event log tells of it, completed by what the host knows. */
export function requestOf (app: App, card: Card, session: string, folder: string): HostRequest {
  const known = app.requests.get(card.id)
  const fromEvents: HostRequest = {
    id: card.id,
    session,
    session_title: null,
    folder,
    kind: card.kind,
    state: card.state,
    opened_at: card.openedAt,
    closed_at: card.closedAt || null,
    by: card.outcome?.by ?? null,
    request: card.request
  }
  if (!known) return fromEvents
  return { ...known, state: card.state === 'open' ? known.state : card.state, by: known.by ?? fromEvents.by }
}

/** What became of a request, in one sentence. */
export function outcomeText (request: HostRequest, outcome: Outcome | null): string {
  const by = request.by?.name ? ` by ${request.by.name}` : ''
  const when = request.closed_at ? `, ${clock(request.closed_at)}` : ''
  const decision = outcome?.decision ?? request.answer?.decision
  const scope = outcome?.scope ?? request.answer?.scope ?? 'once'
  switch (request.state) {
    case 'allowed': {
      if (request.kind === 'question' || request.kind === 'elicitation') return `Answered${by}${when}`
      if (request.kind === 'plan') return `Approved${outcome?.mode === 'acceptEdits' ? ' with edits accepted' : ''}${by}${when}`
      const changed = outcome?.inputChanged ?? request.answer?.input_changed
      return `${changed ? 'Allowed with an edited input' : ALLOWED[scope]}${by}${when}`
    }
    case 'denied':
      if (request.kind === 'plan') return `Kept planning${by}${when}`
      return `Denied${outcome?.interrupt ? ' and stopped' : ''}${by}${when}`
    case 'withdrawn': return `Withdrawn${when}: the turn ended before an answer`
    case 'lost': return `Lost by a restart${when}`
    case 'replaced': return 'Asked again after a restart'
    default: return decision ? `Answered${by}${when}` : ''
  }
}

const ALLOWED: Record<Scope, string> = {
  once: 'Allowed once', session: 'Allowed for this session', local: 'Always allowed in this folder', project: 'Always allowed in this project', user: 'Always allowed in all projects'
}

export interface CardContext { app: App, place: 'session' | 'inbox', outcome: Outcome | null, landmark: boolean, now: number }

export function requestCard (request: HostRequest, context: CardContext): TemplateResult {
  if (request.state !== 'open') return closedCard(request, context)
  const { app, place, now } = context
  const draft = app.answerDraft(request.id)
  return html`<section class="card ${request.kind}" aria-label=${cardName(request)} tabindex="-1" data-card=${request.id} @click=${ignoreSecondClick}>
    <header class="card-head">
      <h2>${icon(request.kind === 'permission' ? 'shield' : request.kind === 'plan' ? 'list' : 'question')}<span>${headline(request)}</span></h2>
      <p class="card-meta">
        ${place === 'inbox' ? html`<a href="/s/${request.session}">${visible(request.session_title || 'Untitled session')}</a>` : nothing}
        <span class="folder-chip hue-${hue(request.folder)}" title=${request.folder}>${visible(place === 'inbox' ? baseName(request.folder) : request.folder)}</span>
        ${request.request.agent_id ? html`<span>asked by a subagent</span>` : nothing}
        <span title=${new Date(request.opened_at).toLocaleString()}>waiting ${now - request.opened_at < 60_000 ? html`since ${clock(request.opened_at)}` : ago(request.opened_at, now)}</span>
      </p>
    </header>
    ${body(request, context)}
    ${draft.error ? html`<p class="card-error" role="alert">${draft.sending ? spinner : nothing}${draft.error}</p>` : draft.sending ? html`<p class="card-sending">${spinner}Sending…</p>` : nothing}
  </section>`
}

/** The second click of a double click would meet the next card, which has moved to where this one was. */
function ignoreSecondClick (event: MouseEvent) {
  if (event.detail < 2 || !(event.target as Element).closest('button')) return
  event.stopPropagation()
  event.preventDefault()
}

function cardName (request: HostRequest): string {
  return request.kind === 'elicitation' ? 'Question' : requestTitle(request)
}

function headline (request: HostRequest) {
  const { request: call } = request
  switch (request.kind) {
    case 'question': return 'The agent has a question'
    case 'plan': return 'The agent has a plan'
    case 'elicitation': return html`${visible(call.mcp_server_name ?? 'A server')} asks`
    default: return html`Allow <b>${visible(call.tool_name)}</b>?`
  }
}

function body (request: HostRequest, context: CardContext): TemplateResult {
  const { app } = context
  switch (request.kind) {
    case 'question': return questionBody(app, request)
    case 'plan': return planBody(app, request)
    case 'elicitation': return elicitationBody(app, request)
    default: return permissionBody(request, context)
  }
}

function closedCard (request: HostRequest, { outcome, landmark, app }: CardContext): TemplateResult {
  const message = outcome?.message ?? request.answer?.message
  const rule = outcome?.rule ?? request.answer?.rule
  const denied = request.state === 'denied'
  const content = html`<p class="outcome ${request.state}"><span role="status">${icon(request.state === 'allowed' ? 'check' : denied && request.kind !== 'plan' ? 'slash' : 'clock')}${outcomeText(request, outcome)}</span>
      ${rule ? html`<code>${visible(rule)}</code>` : nothing}${message ? html`<span class="note">“${visible(message)}”</span>` : nothing}</p>
    ${outcome?.inputChanged && outcome.input ? editedInput(request, outcome.input) : nothing}
    ${request.kind === 'question' && outcome?.answers ? html`<dl class="input answers">${Object.entries(outcome.answers).map(([question, answer]) => html`<div><dt>${visible(question)}</dt><dd>${visible(Array.isArray(answer) ? answer.join(', ') : answer)}</dd></div>`)}</dl>` : nothing}
    ${request.state === 'replaced' && request.by_request && app.requests.has(request.by_request) ? html`<p class="outcome"><a href="/s/${request.session}">See the new question</a></p>` : nothing}`
  return landmark ? html`<section class="closed-card" aria-label=${cardName(request)} tabindex="-1">${content}</section>` : html`<div class="closed-card">${content}</div>`
}

function editedInput (request: HostRequest, input: Record<string, unknown>): TemplateResult {
  return html`<div class="edited"><p>Asked for</p>${preview(request.request.tool_name, request.request.input)}<p>Ran instead</p>${preview(request.request.tool_name, input)}</div>`
}

function preview (tool: string, input: Record<string, unknown>): TemplateResult {
  if (tool === 'Bash' && typeof input.command === 'string') return html`<pre class="command" tabindex="0" aria-label="Command">${highlight(input.command, 'bash')}</pre>`
  return inputTable(input)
}

function permissionBody (request: HostRequest, { app }: CardContext): TemplateResult {
  const { request: call, id } = request
  const draft = app.answerDraft(id)
  const scopes = request.scopes ?? []
  const session = scopes.find(choice => choice.scope === 'session')
  const editing = draft.editing !== null
  return html`
    <div class="card-body">
      ${what(app, request)}
      ${call.decision_reason ? html`<p class="reason">${visible(call.decision_reason)}</p>` : nothing}
      ${call.default_to_no ? html`<p class="reason strong">This call can do damage that cannot be undone.</p>` : nothing}
    </div>
    ${editing ? inputEditor(app, request) : nothing}
    <div class="actions">
      ${editing
        ? html`<button type="button" class="primary" ?disabled=${draft.sending} @click=${() => answerEdited(app, request)}>Allow edited</button>
          <button type="button" @click=${() => app.setDraft(id, { editing: null, inputError: null, error: null })}>Cancel</button>`
        : html`<button type="button" class="primary" ?disabled=${draft.sending} @click=${(event: Event) => answer(app, request, event, { decision: 'allow' })}>Allow once</button>
          ${session ? html`<button type="button" title=${session.rule} ?disabled=${draft.sending} @click=${(event: Event) => answer(app, request, event, { decision: 'allow', scope: 'session' })}>Allow for this session</button>` : nothing}
          ${scopes.length ? html`<button type="button" ?disabled=${draft.sending} @click=${() => app.openDialog({ kind: 'always', request: id, chosen: defaultScope(scopes) })}>Always allow…</button>` : nothing}`}
      <span class="divider"></span>
      <button type="button" class="deny" ?disabled=${draft.sending} @click=${(event: Event) => answer(app, request, event, { decision: 'deny' })}>Deny</button>
      <button type="button" class="deny" ?disabled=${draft.sending} @click=${(event: Event) => answer(app, request, event, { decision: 'deny', interrupt: true })}>Deny and stop</button>
      ${editing ? nothing : html`<button type="button" class="quiet" ?disabled=${draft.sending} @click=${(event: Event) => beginEdit(app, request, event)}>Edit input</button>`}
    </div>
    ${session ? html`<p class="rule-line">Session rule: <code>${visible(session.rule)}</code>${untrusted(app, request)}</p>` : nothing}
    <label class="note-field"><span class="unseen">Note to the agent</span><input type="text" name="note" placeholder="Note to the agent, sent with the answer" autocomplete="off"></label>`
}

function untrusted (app: App, request: HostRequest) {
  const known = app.sessions.get(request.session)
  if (!known || known.trusted) return nothing
  const adds = trustSummary(app.trustOf(request.folder))
  return html` · <button type="button" class="link" @click=${() => app.setTrust(request.folder, true)}>Trust this folder</button>${adds ? html` <span class="hint">(${adds})</span>` : nothing}`
}

function defaultScope (scopes: { scope: Scope }[]): Scope {
  return scopes.find(choice => choice.scope === 'local')?.scope ?? scopes.at(-1)!.scope
}

/** The call itself: the command, the change, or the fields. */
function what (app: App, request: HostRequest): TemplateResult {
  const { request: call, folder } = request
  const path = String(call.input.file_path ?? call.input.notebook_path ?? '')
  if (call.tool_name === 'Bash' && typeof call.input.command === 'string') {
    return html`<pre class="command" tabindex="0" aria-label="Command">${highlight(call.input.command, 'bash')}</pre>
      ${call.input.description ? html`<p class="description">${visible(String(call.input.description))}</p>` : nothing}
      ${call.input.run_in_background ? html`<p class="description">Runs in the background</p>` : nothing}`
  }
  if (EDITORS.includes(call.tool_name)) {
    return html`<p class="path">${icon('file')}${visible(relativePath(path, folder))}</p>${change(app, request)}`
  }
  return inputTable(call.input)
}

/** The change with the line numbers of the file, as soon as that is read; without them before. */
function change (app: App, request: HostRequest): TemplateResult {
  const { input } = request.request
  const before = app.fileOf(request)
  if (before === null) return diffTable(app, `card:${request.id}`, linesOf({ input, meta: null }), 'Changes', typeof input.content === 'string')
  return diffTable(app, `card:${request.id}`, diffOf(before, input), 'Changes')
}

const diffs = new WeakMap<object, { before: string, lines: Line[] }>()

function diffOf (before: string, input: Record<string, unknown>): Line[] {
  const known = diffs.get(input)
  if (known?.before === before) return known.lines
  const lines = diffTexts(before, editedText(before, input))
  diffs.set(input, { before, lines })
  return lines
}

function note (event: Event): string {
  const card = (event.currentTarget as Element).closest('.card')
  return card?.querySelector<HTMLInputElement>('input[name=note]')?.value.trim() ?? ''
}

export function answer (app: App, request: HostRequest, event: Event, answer: Answer) {
  const message = note(event)
  void app.answer(request.id, message ? { ...answer, message } : answer)
}

// --- editing the input

/** Commands are edited as text, all other inputs as JSON. */
function editable (tool: string, input: Record<string, unknown>): string {
  return tool === 'Bash' && typeof input.command === 'string' ? input.command : JSON.stringify(input, null, 2)
}

function beginEdit (app: App, request: HostRequest, event: Event) {
  const card = (event.currentTarget as Element).closest('.card')
  app.setDraft(request.id, { editing: editable(request.request.tool_name, request.request.input) })
  requestAnimationFrame(() => requestAnimationFrame(() => card?.querySelector<HTMLElement>('.editor textarea')?.focus()))
}

function inputEditor (app: App, request: HostRequest): TemplateResult {
  const draft = app.answerDraft(request.id)
  const text = draft.editing ?? ''
  const rows = Math.min(16, Math.max(2, text.split('\n').length))
  return html`<label class="editor"><span>${request.request.tool_name === 'Bash' ? 'Command' : 'Input as JSON'}</span>
    <textarea aria-label="Input" spellcheck="false" rows=${rows} .value=${text} @input=${(event: Event) => app.setDraft(request.id, { editing: (event.target as HTMLTextAreaElement).value })}></textarea></label>`
}

function answerEdited (app: App, request: HostRequest) {
  const { editing } = app.answerDraft(request.id)
  const { request: call } = request
  if (editing === null) return
  let input: unknown
  try {
    input = call.tool_name === 'Bash' && typeof call.input.command === 'string' ? { ...call.input, command: editing } : JSON.parse(editing)
  } catch (error) {
    return app.setDraft(request.id, { error: `This is not JSON: ${error instanceof Error ? error.message : ''}` })
  }
  void app.answer(request.id, { decision: 'allow', input })
}


// The inbox: what waits in all sessions, answered in place.

import { html, nothing, type TemplateResult } from 'lit-html'
import { repeat } from 'lit-html/directives/repeat.js'
import type { App } from '../app'
import { visible } from '../text/visible'
import { requestCard } from './card'
import { spinner } from './icons'

export function inboxPage (app: App): TemplateResult {
  const open = app.openRequests()
  const now = Date.now()
  const answered = app.answeredHere.flatMap(id => app.requests.get(id) ?? []).filter(request => request.state !== 'open')
  return html`<main class="page inbox"><h1>Inbox</h1>
    <div class="inbox-list" role="list" aria-label="Waiting for you">
      ${repeat(open, request => request.id, request => html`<div role="listitem">${requestCard(request, { app, place: 'inbox', outcome: null, landmark: true, now })}</div>`)}
    </div>
    ${open.length ? nothing : app.requestsLoaded ? html`<p class="empty">Nothing waits for you.</p>` : html`<p class="empty">${spinner} Loading…</p>`}
    ${answered.length ? html`<section aria-label="Answered"><h2>Answered</h2><div class="answered-list" role="list" aria-label="Answered just now">
      ${answered.map(request => html`<div role="listitem" class="answered"><a href="/s/${request.session}">${visible(request.session_title || 'Untitled session')}</a><span class="answered-what">${visible(summaryOf(request.request.tool_name, request.request.input))}</span>${requestCard(request, { app, place: 'inbox', outcome: null, landmark: false, now })}</div>`)}
    </div></section>` : nothing}
  </main>`
}

function summaryOf (tool: string | undefined, input: Record<string, unknown> | undefined): string {
  const first = Object.values(input ?? {}).find(value => typeof value === 'string')
  return [tool, typeof first === 'string' ? first.split('\n')[0]!.slice(0, 120) : ''].filter(Boolean).join(' · ')
}

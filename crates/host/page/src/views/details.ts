// The side panel of a session: steps, agents, changed files, cost and context.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import type { Session } from '../contract'
import type { AgentTask, Conversation } from '../conversation/state'
import type { SessionStore } from '../session_store'
import { cost, count, duration, relativePath } from '../text/format'
import { visible } from '../text/visible'
import { icon, spinner } from './icons'
import { trustSection } from './trust'

export function details (app: App, store: SessionStore, session: Session): TemplateResult {
  const { conversation } = store
  return html`<aside class="details" aria-label="Details">
    ${steps(conversation)}
    ${agents(app, store)}
    ${files(conversation, session)}
    ${spending(app, store, session)}
    ${trustSection(app, session.folder, session.trusted)}
  </aside>`
}

function steps ({ steps }: Conversation) {
  if (!steps.length) return nothing
  const done = steps.filter(step => step.status === 'completed').length
  return html`<section><h2>Tasks <span class="hint">${done} of ${steps.length}</span></h2>
    <ul class="steps" role="list" aria-label="Tasks">${steps.map(step => html`<li class=${step.status}>${step.status === 'completed' ? icon('check') : step.status === 'in_progress' ? spinner : html`<span class="dot"></span>`}
      <span>${visible(step.status === 'in_progress' && step.active ? step.active : step.subject)}</span><span class="unseen">${step.status.replace('_', ' ')}</span></li>`)}</ul></section>`
}

function agents (app: App, store: SessionStore) {
  const tasks = [...store.conversation.tasks.values()]
  if (!tasks.length) return nothing
  const ids = new Set(tasks.map(task => task.id))
  const roots = tasks.filter(task => !task.parent || !ids.has(task.parent))
  const branch = (level: AgentTask[]): TemplateResult => html`<ul class="agents" role="list">${level.map(task => {
    const inner = tasks.filter(other => other.parent === task.id)
    return html`<li>${agent(app, store, task)}${inner.length ? branch(inner) : nothing}</li>`
  })}</ul>`
  const running = tasks.filter(task => task.status === 'running').length
  return html`<section aria-label="Agents"><h2>Agents ${running ? html`<span class="hint">${running} running</span>` : nothing}</h2>${branch(roots)}</section>`
}

function agent (app: App, store: SessionStore, task: AgentTask): TemplateResult {
  const running = task.status === 'running'
  const mark = running ? spinner : icon(task.status === 'completed' ? 'check' : task.status === 'failed' ? 'cross' : 'stop')
  const doing = [task.agent ?? (task.type.includes('bash') ? 'command' : ''), task.background ? 'in the background' : '', running && task.lastTool ? `${task.lastTool}…` : '', task.tokens ? `${count(task.tokens)} tokens` : '', !running && task.durationMs ? duration(task.durationMs) : '']
  return html`<div class="agent ${task.status}">${mark}<div><span>${visible(task.description || task.id)}</span><span class="hint">${visible(doing.filter(Boolean).join(' · '))}</span></div>
    <span class="unseen">${task.status}</span>
    ${running ? html`<button type="button" class="small" aria-label="Stop ${task.description}" @click=${() => { app.control(store.id, { subtype: 'stop_task', task_id: task.id }).catch(error => app.fail(error)) }}>Stop</button>` : nothing}</div>`
}

function files ({ files }: Conversation, session: Session) {
  if (!files.size) return nothing
  return html`<section><h2>Files changed <span class="hint">${files.size}</span></h2>
    <ul class="files" role="list" aria-label="Files changed">${[...files].map(([path, { added, removed }]) => html`<li><span class="file-name" title=${path}><bdi>${visible(relativePath(path, session.folder))}</bdi></span>
      <span>${added ? html`<span class="plus">+${added}</span>` : nothing} ${removed ? html`<span class="minus">−${removed}</span>` : nothing}</span></li>`)}</ul></section>`
}

function spending (app: App, store: SessionStore, session: Session): TemplateResult {
  const { usage, contextWindow } = store.conversation
  const used = (usage?.input_tokens ?? 0) + (usage?.cache_read_input_tokens ?? 0) + (usage?.cache_creation_input_tokens ?? 0) + (usage?.output_tokens ?? 0)
  const { context } = store
  const total = context?.maxTokens ?? contextWindow
  const now = context?.totalTokens ?? used
  return html`<section><h2>Cost and context</h2>
    <dl class="figures"><div><dt>Cost</dt><dd>${cost(Math.max(session.cost_usd, store.conversation.costUsd))}</dd></div>
    ${now ? html`<div><dt>Context</dt><dd>${count(now)}${total ? ` of ${count(total)}` : ''}</dd></div>` : nothing}</dl>
    ${now && total ? html`<progress class=${now / total > 0.85 ? 'full' : ''} max=${total} value=${Math.min(now, total)} aria-label="Context used"></progress>` : nothing}
    ${context ? html`<dl class="figures small-figures">${context.categories.filter(category => category.tokens > 0).map(category => html`<div><dt>${visible(category.name)}</dt><dd>${count(category.tokens)}</dd></div>`)}</dl>` : html`<button type="button" class="small" @click=${() => app.loadContext(store)}>What fills the context</button>`}
  </section>`
}

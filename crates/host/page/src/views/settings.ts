// Settings: devices and keys, permission rules, theme, notifications.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import { get, post, remove, request } from '../net/http'
import { notificationsWanted } from '../notify'
import { applyTheme, store, theme, type Theme } from '../storage'
import { ago, moment } from '../text/format'
import { visible } from '../text/visible'
import { spinner } from './icons'

interface Token { id: string, kind: 'device' | 'key' | 'code' | 'file', name: string, made_at: number, seen_at: number | null, ends_at: number | null, current?: boolean }
interface Rule { source: string, behavior: string, rule: string }

const state = { tokens: null as Token[] | null, rules: null as Rule[] | null, rulesError: null as string | null, session: '', opened: false, rulesAsked: false }

export function settingsOpened () {
  state.opened = false
}

function load (app: App) {
  state.opened = true
  get<{ tokens: Token[] }>('/v1/tokens').then(({ tokens }) => { state.tokens = tokens; app.changed() }, error => app.fail(error))
  state.rulesAsked = false
}

type RuleList = { rules: Rule[] }

/** The rules as the newest usable session of a folder sees them. */
function loadRules (app: App) {
  const usable = [...app.sessions.values()].filter(session => session.state !== 'elsewhere').sort((a, b) => b.touched_at - a.touched_at)
  const session = usable.find(session => session.id === state.session) ?? usable[0]
  state.rulesAsked = true
  state.session = session?.id ?? ''
  state.rules = session ? null : []
  if (!session) return
  app.control<RuleList & { state?: RuleList }>(session.id, { subtype: 'list_permission_rules' }).then(reply => {
    state.rules = (reply.state ?? reply).rules.map(({ source, behavior, rule }) => ({ source, behavior, rule }))
    state.rulesError = null
    app.changed()
  }, (error: Error) => { state.rulesError = error.message; state.rules = []; app.changed() })
}

export function settingsPage (app: App): TemplateResult {
  if (!state.opened) load(app)
  if (!state.rulesAsked && app.sessionsLoaded) loadRules(app)
  return html`<main class="page settings"><h1>Settings</h1>
    <section><div class="page-head"><h2>Devices and keys</h2><span class="spacer"></span>
      <button type="button" @click=${() => addDevice(app)}>Add a device</button><button type="button" @click=${() => app.openDialog({ kind: 'key', secret: null })}>New key</button></div>
      ${devices(app)}</section>
    <section><div class="page-head"><h2>Permission rules</h2><span class="spacer"></span>${ruleSession(app)}</div>${rules(app)}</section>
    <section><h2>Appearance</h2>${themeChoice(app)}</section>
    <section><h2>Notifications</h2>
      <label class="check"><input type="checkbox" .checked=${notificationsWanted()} @change=${(event: Event) => setNotifications(app, event.target as HTMLInputElement)}>Tell me when a session waits for an answer and no tab is visible</label></section>
    <section><h2>About</h2><p class="hint">Whimbrel ${app.me?.version ?? ''} · signed in as ${app.me?.person?.name ?? ''} · <button type="button" class="link" @click=${() => app.openDialog({ kind: 'shortcuts' })}>Keyboard</button></p>
      <p><button type="button" @click=${() => app.signOut().catch(error => app.fail(error))}>Sign out</button></p></section>
  </main>`
}

function devices (app: App): TemplateResult {
  if (!state.tokens) return html`<p class="empty">${spinner} Loading…</p>`
  const revoke = (token: Token) => remove(`/v1/tokens/${token.id}`).then(() => load(app), error => app.fail(error))
  return html`<div class="table" tabindex="0" role="group" aria-label="Devices table"><table aria-label="Devices" class="data">
    <thead><tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">Added</th><th scope="col">Last seen</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
    <tbody>${state.tokens.map(token => html`<tr><th scope="row">${visible(token.name || token.kind)}${token.current ? html` <span class="badge quiet">this one</span>` : nothing}</th><td>${token.kind}</td><td>${moment(token.made_at)}</td><td>${token.seen_at ? (ago(token.seen_at) === 'now' ? 'now' : `${ago(token.seen_at)} ago`) : 'never'}</td>
      <td>${token.kind === 'file' ? nothing : html`<button type="button" class="small" @click=${() => revoke(token)}>Remove</button>`}</td></tr>`)}</tbody>
  </table></div>`
}

/** Makes a sign-in link for another device. */
function addDevice (app: App) {
  app.openDialog({ kind: 'device', link: null, error: null })
  post<{ secret: string }>('/v1/tokens', { kind: 'code' }).then(
    ({ secret }) => { app.openDialog({ kind: 'device', link: `${location.origin}/login#${secret}`, error: null }); load(app) },
    (error: Error) => app.openDialog({ kind: 'device', link: null, error: error.message })
  )
}

/** Makes a key for a program; its secret is shown once. */
export function addKey (app: App, name: string) {
  post<{ secret: string }>('/v1/tokens', { kind: 'key', name }).then(({ secret }) => { app.openDialog({ kind: 'key', secret }); load(app) }, error => app.fail(error))
}

function ruleSession (app: App) {
  const usable = [...app.sessions.values()].filter(session => session.state !== 'elsewhere').sort((a, b) => b.touched_at - a.touched_at)
  const folders = new Map(usable.map(session => [session.folder, session.id]).reverse() as [string, string][])
  if (folders.size < 2) return nothing
  const current = app.sessions.get(state.session)?.folder
  const choose = (event: Event) => { state.session = (event.target as HTMLSelectElement).value; loadRules(app) }
  return html`<label class="field-inline">Folder <select class="compact" aria-label="Rules of folder" @change=${choose}>${[...folders].map(([folder, id]) => html`<option value=${id} ?selected=${folder === current}>${visible(folder)}</option>`)}</select></label>`
}

const SOURCES: Record<string, string> = {
  session: 'This session', localSettings: 'This folder, only me', projectSettings: 'This project', userSettings: 'All my projects', local: 'This folder, only me', project: 'This project', user: 'All my projects', policySettings: 'Managed', cliArg: 'Start option'
}

/** Where rules can be removed by a person. */
const REMOVABLE = ['session', 'localSettings', 'projectSettings', 'userSettings']

function rules (app: App): TemplateResult {
  if (state.rulesError) return html`<p class="hint">${state.rulesError}</p>`
  if (!state.rules) return html`<p class="empty">${spinner} Loading…</p>`
  const drop = (rule: Rule) => request('DELETE', `/v1/sessions/${state.session}/permission-rules`, rule).then(() => loadRules(app), error => app.fail(error))
  return html`<div class="table" tabindex="0" role="group" aria-label="Rules table"><table aria-label="Permission rules" class="data">
    <thead><tr><th scope="col">Rule</th><th scope="col">Effect</th><th scope="col">Where</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
    <tbody>${state.rules.length ? state.rules.map(rule => html`<tr><th scope="row"><code>${visible(rule.rule)}</code></th><td>${rule.behavior}</td><td>${SOURCES[rule.source] ?? rule.source}</td><td>${REMOVABLE.includes(rule.source) ? html`<button type="button" class="small" @click=${() => drop(rule)}>Remove</button>` : nothing}</td></tr>`) : html`<tr><td colspan="4" class="hint">No rules yet. “Always allow…” on a card adds one.</td></tr>`}</tbody>
  </table></div>`
}

function themeChoice (app: App): TemplateResult {
  const choose = (value: Theme) => () => { applyTheme(value); app.changed() }
  return html`<fieldset class="choices"><legend class="unseen">Theme</legend>${(['system', 'light', 'dark'] as Theme[]).map(value => html`<label class="check"><input type="radio" name="theme" .checked=${theme() === value} @change=${choose(value)}>${value === 'system' ? 'As the system' : value === 'light' ? 'Light' : 'Dark'}</label>`)}</fieldset>`
}

async function setNotifications (app: App, input: HTMLInputElement) {
  if (!input.checked) store('notifications', null)
  else if (!('Notification' in window)) app.say('This browser has no notifications on this address. It needs https or localhost.')
  else if (await Notification.requestPermission() === 'granted') store('notifications', 'on')
  else app.say('The browser does not allow notifications for this page. Change it in its settings for this site.')
  app.changed()
}

// The frame of every page: banner, navigation, notices, dialogs, announcements.

import { html, nothing, type TemplateResult } from 'lit-html'
import { svg } from 'lit-html'
import type { App } from '../app'
import { dialogs } from './dialogs'
import { inboxPage } from './inbox'
import { loginPage } from './login'
import { sessionPage } from './session'
import { sessionsPage } from './sessions'
import { settingsPage } from './settings'
import { usagePage } from './usage'
import { icon } from './icons'

const CONNECTION = { connecting: 'Reconnecting…', connected: 'Connected', signed_out: 'Signed out' }

/** A wading bird with a curved bill. */
const mark = html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true">${svg`<path d="M3 9.500c2.5-3 5-4 7.5-3.5 2.8.6 3.4 3.4 6 4.2 2.6.8 4.5 2 4.5 2-3 4.3-8.5 5-11.5 3.300C6.5 13.8 8 10 6.5 8.8 5.4 8 4 8.6 3 9.500zM11.5 16l-.8 4M14.5 15.800l.8 4.2"/>`}</svg>`

export function shell (app: App): TemplateResult {
  const waiting = app.openRequests().length
  document.title = titleOf(app, waiting)
  const { page } = app.route
  const link = (path: string, name: string, current: boolean, extra: unknown = nothing) => html`<a href=${path} aria-current=${current ? 'page' : nothing}>${extra === nothing ? name : extra}</a>`
  return html`
    <a class="skip-link" href="#content" data-native>Skip to the content</a>
    <header class="banner">
      <a class="home" href="/">${mark}<span>Whimbrel</span></a>
      ${app.me?.person ? html`<nav aria-label="Main">
        ${link('/inbox', 'Inbox', page === 'inbox', waiting ? html`<span aria-hidden="true">Inbox</span><span class="unseen">Inbox, ${waiting} waiting</span><span class="count" aria-hidden="true">${waiting}</span>` : nothing)}
        ${link('/', 'Sessions', page === 'sessions' || page === 'session')}
        ${link('/usage', 'Usage', page === 'usage')}
        ${link('/settings', 'Settings', page === 'settings')}
      </nav>` : nothing}
      <span class="connection ${app.connection}" role="status" aria-label="Connection"><span class="connection-dot"></span><span class="connection-word">${CONNECTION[app.connection]}</span></span>
    </header>
    <div id="content" class="content" tabindex="-1">${content(app)}</div>
    <div class="notices" role="status" aria-label="Notices">${app.notices.map(notice => html`<div class="notice-box"><span>${notice.text}</span>
      ${notice.action ? html`<button type="button" @click=${() => { app.dismiss(notice.id); notice.action?.run() }}>${notice.action.label}</button>` : nothing}
      <button type="button" class="icon-button" aria-label="Dismiss" @click=${() => app.dismiss(notice.id)}>${icon('cross')}</button></div>`)}</div>
    <div class="unseen" aria-live="assertive" aria-atomic="true">${app.announcement}</div>
    ${dialogs(app)}`
}

function content (app: App): unknown {
  const { route } = app
  if (!app.me) return nothing
  if (route.page === 'login' || !app.me.person) return loginPage(app)
  switch (route.page) {
    case 'sessions': return sessionsPage(app)
    case 'session': return sessionPage(app, route.id)
    case 'inbox': return inboxPage(app)
    case 'usage': return usagePage(app)
    case 'settings': return settingsPage(app)
    case 'missing': return html`<main class="page"><h1>No such page</h1><p><a href="/">All sessions</a></p></main>`
  }
}

function titleOf (app: App, waiting: number): string {
  const count = waiting ? `(${waiting}) ` : ''
  const session = app.route.page === 'session' ? app.sessions.get(app.route.id) : undefined
  return session?.title ? `${count}Whimbrel · ${session.title}` : `${count}Whimbrel`
}

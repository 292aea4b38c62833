// The entry of the page: draws the app, follows links without loading anew, and ticks while something runs.

import { render } from 'lit-html'
import { App } from './app'
import { listenToKeys } from './keyboard'
import { applyTheme } from './storage'
import { onHighlighter } from './text/code'
import { followEnd } from './views/scroll'
import { openNew } from './views/sessions'
import { settingsOpened } from './views/settings'
import { shell } from './views/shell'
import { usageOpened } from './views/usage'

applyTheme()
const app = new App()
const root = document.getElementById('app')!

let drawnRoute: unknown

app.onDraw(() => {
  if (app.route !== drawnRoute) {
    drawnRoute = app.route
    usageOpened()
    settingsOpened()
    routeChanged()
  }
  render(shell(app), root)
  followEnd(app.route.page === 'session' ? app.route.id : null)
})

onHighlighter(() => app.changed())
listenToKeys(app)

/** A keyboard is at hand where a pointer is fine; elsewhere the focus would open the keyboard of the screen. */
function routeChanged () {
  if (app.route.page !== 'session' || !matchMedia('(pointer: fine)').matches) return
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (document.activeElement === document.body || !document.activeElement) document.querySelector<HTMLElement>('textarea[name=message]')?.focus()
  }))
}

document.addEventListener('click', event => {
  const target = event.target as Element
  for (const menu of document.querySelectorAll<HTMLDetailsElement>('details.menu[open]')) {
    if (!menu.contains(target) || target.closest('.menu-items')) menu.open = false
  }
  const link = target.closest<HTMLAnchorElement>('a[href^="/"]')
  if (!link || 'native' in link.dataset || link.target || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  app.navigate(link.getAttribute('href')!)
  if ('new' in link.dataset && !app.creating.open) openNew(app)
  if (link.closest('.banner')) document.getElementById('content')?.focus({ preventScroll: true })
})

window.addEventListener('popstate', () => app.navigate(location.pathname, 'keep'))

/** Times on the page move while something runs or waits. */
setInterval(() => {
  if (document.visibilityState !== 'visible') return
  const state = app.currentStore()?.conversation.state
  if (state === 'running' || app.openRequests().length) app.changed()
}, 1000)

void app.start()

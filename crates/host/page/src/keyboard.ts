// Keys of the whole page. No key allows or denies anything.

import type { App } from './app'
import { openNew } from './views/sessions'

let prefix = ''

export function listenToKeys (app: App) {
  document.addEventListener('keydown', event => {
    if (event.defaultPrevented || event.isComposing || app.dialog) return
    if (event.key === 'Escape') return escape(app, event)
    const field = (event.target as Element).closest?.('input, textarea, select, [contenteditable]')
    if (field || event.ctrlKey || event.metaKey || event.altKey) return
    const keys = prefix + event.key
    prefix = event.key === 'g' && prefix === '' ? 'g' : ''
    if (run(app, keys)) event.preventDefault()
  })
}

function run (app: App, keys: string): boolean {
  switch (keys) {
    case 'gi': app.navigate('/inbox'); return true
    case 'gs': app.navigate('/'); return true
    case '/': {
      if (app.route.page !== 'sessions') app.navigate('/')
      afterDrawing(() => document.querySelector<HTMLElement>('input[type=search]')?.focus())
      return true
    }
    case 'n': {
      if (app.route.page !== 'sessions') app.navigate('/')
      if (!app.creating.open) openNew(app)
      return true
    }
    case 'j': return moveCard(1)
    case 'k': return moveCard(-1)
    case '?': app.openDialog({ kind: 'shortcuts' }); return true
    default: return false
  }
}

function afterDrawing (run: () => void) {
  requestAnimationFrame(() => requestAnimationFrame(run))
}

function moveCard (step: number): boolean {
  const cards = [...document.querySelectorAll<HTMLElement>('.card[data-card]')]
  if (!cards.length) return false
  const at = cards.findIndex(card => card.contains(document.activeElement))
  const next = cards[at < 0 ? (step > 0 ? 0 : cards.length - 1) : Math.min(cards.length - 1, Math.max(0, at + step))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
  return true
}

let escapedAt = 0

/** Escape closes what is open; twice within three seconds it stops the turn. */
function escape (app: App, event: KeyboardEvent) {
  const menu = document.querySelector<HTMLDetailsElement>('details.menu[open]')
  if (menu) {
    menu.open = false
    menu.querySelector('summary')?.focus()
    return
  }
  const session = app.currentStore()
  const state = session?.conversation.state
  if (!session || (state !== 'running' && state !== 'waiting')) return
  event.preventDefault()
  if (Date.now() - escapedAt < 3000) {
    escapedAt = 0
    void app.interrupt(session)
  } else {
    escapedAt = Date.now()
    app.say('Press Escape again to stop the turn.')
  }
}

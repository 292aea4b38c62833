// Notifications of the browser, for requests that wait while no tab is visible. Off until a person turns them on.

import { stored } from './storage'

export function notificationsWanted (): boolean {
  return stored('notifications') === 'on' && 'Notification' in window && Notification.permission === 'granted'
}

/** Time after which a request is told of, if no tab of ours is looked at. */
const DELAY_MS = 5000

export function notify (title: string, body: string, path: string, isWaiting: () => Promise<boolean>, open: (path: string) => void) {
  if (!notificationsWanted()) return
  const show = () => {
    const notification = new Notification(title, { body, tag: path })
    notification.onclick = () => { window.focus(); open(path) }
  }
  setTimeout(() => { void isWaiting().then(waits => { if (waits) show() }) }, DELAY_MS)
}

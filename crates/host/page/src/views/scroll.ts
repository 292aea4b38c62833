// Scrolling of the conversation: it follows new text only while the reader is at the end.

import { html, type TemplateResult } from 'lit-html'
import type { App } from '../app'

const NEAR_END = 48

let atEnd = true
let current: string | null = null
let observer: ResizeObserver | undefined
let watched: Element | null = null

export function scrolled (app: App, element: HTMLElement) {
  const now = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END
  if (now !== atEnd) {
    atEnd = now
    showButton(!atEnd)
  }
  if (element.scrollTop < 200 && element.scrollHeight > element.clientHeight * 1.5) {
    const earlier = element.querySelector<HTMLButtonElement>('[data-earlier]')
    if (earlier && app.currentStore()?.end === null) earlier.click()
  }
}

export function scrollButton (): TemplateResult {
  return html`<div class="to-end"><button type="button" hidden @click=${scrollToEnd}>New messages</button></div>`
}

function showButton (show: boolean) {
  const button = document.querySelector<HTMLButtonElement>('.to-end button')
  if (button) button.hidden = !show
}

export function scrollToEnd () {
  const element = document.querySelector<HTMLElement>('.scroll')
  if (!element) return
  atEnd = true
  element.scrollTop = element.scrollHeight
  showButton(false)
}

/** After each drawing: another session begins at its end; the observer keeps the end in view while content grows. */
export function followEnd (session: string | null) {
  const element = document.querySelector<HTMLElement>('.scroll')
  const column = element?.firstElementChild ?? null
  if (session !== current) {
    current = session
    atEnd = true
  }
  if (!element || !column) return
  if (column !== watched) {
    observer?.disconnect()
    observer = new ResizeObserver(() => { if (atEnd) scrollToEnd() })
    observer.observe(column)
    observer.observe(element)
    watched = column
  }
  // What is below the conversation stands under it, also where a scrollbar takes space.
  element.parentElement?.style.setProperty('--gutter', `${element.offsetWidth - element.clientWidth}px`)
  if (atEnd) element.scrollTop = element.scrollHeight
  else showButton(true)
}

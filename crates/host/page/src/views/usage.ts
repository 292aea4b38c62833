// What sessions have cost, as a table.

import { html, type TemplateResult } from 'lit-html'
import type { App } from '../app'
import { get } from '../net/http'
import { cost, count } from '../text/format'
import { visible } from '../text/visible'
import { spinner } from './icons'

interface Row { key: string, turns: number, input: number, output: number, cache_read: number, cache_write: number, cost_usd: number }

const state = { by: 'day' as 'day' | 'model' | 'session', rows: null as Row[] | null, loaded: '' }

function load (app: App) {
  const by = state.by
  state.loaded = by
  get<{ rows: Row[] }>(`/v1/usage?by=${by}`).then(({ rows }) => {
    if (state.by === by) state.rows = rows
    app.changed()
  }, error => app.fail(error))
}

/** Reads the figures again when the page is opened. */
export function usageOpened () {
  state.loaded = ''
}

export function usagePage (app: App): TemplateResult {
  if (state.loaded !== state.by) load(app)
  const rows = state.rows ?? []
  const sum = (field: keyof Row) => rows.reduce((total, row) => total + Number(row[field]), 0)
  const choose = (event: Event) => {
    state.by = (event.target as HTMLSelectElement).value as 'day'
    app.changed()
  }
  return html`<main class="page"><div class="page-head"><h1>Usage</h1><span class="spacer"></span>
      <label class="field-inline">By <select class="compact" aria-label="By" @change=${choose}>${(['day', 'model', 'session'] as const).map(by => html`<option value=${by} ?selected=${by === state.by}>${by}</option>`)}</select></label>
      <a class="button" href="/v1/usage?by=${state.by}&format=csv" download="usage.csv" data-native>Download CSV</a></div>
    ${state.rows === null ? html`<p class="empty">${spinner} Loading…</p>` : html`<div class="table" tabindex="0" role="group" aria-label="Usage table"><table aria-label="Usage" class="data">
      <thead><tr><th scope="col">${state.by === 'day' ? 'Day' : state.by === 'model' ? 'Model' : 'Session'}</th><th scope="col">Turns</th><th scope="col">Input</th><th scope="col">Output</th><th scope="col">Cache read</th><th scope="col">Cache written</th><th scope="col">Cost</th></tr></thead>
      <tbody>${rows.map(row => html`<tr><th scope="row">${label(app, row.key)}</th><td>${row.turns}</td><td>${count(row.input)}</td><td>${count(row.output)}</td><td>${count(row.cache_read)}</td><td>${count(row.cache_write)}</td><td>${cost(row.cost_usd)}</td></tr>`)}</tbody>
      <tfoot><tr><th scope="row">Sum</th><td>${sum('turns')}</td><td>${count(sum('input'))}</td><td>${count(sum('output'))}</td><td>${count(sum('cache_read'))}</td><td>${count(sum('cache_write'))}</td><td>${cost(sum('cost_usd'))}</td></tr></tfoot>
    </table></div>`}
  </main>`
}

function label (app: App, key: string) {
  if (state.by !== 'session') return visible(key)
  return html`<a href="/s/${key}">${visible(app.sessions.get(key)?.title || key)}</a>`
}

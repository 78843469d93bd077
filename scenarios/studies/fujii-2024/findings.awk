# Findings of Fujii et al. 2024, asked of the measured runs and of predicted ones: reads what
#   slipway validate scenarios/studies/fujii-2024/runs.csv --rows FILE
# writes. Prints, per finding, what the measurements say, what the predictions say, and whether they agree.
BEGIN { FS = "," }
/^#/ { next }
!have { for (i = 1; i <= NF; i++) col[$i] = i; have = 1; next }

function get(name) { return $(col[name]) }

{
  status = get("status")
  if (status != "ok" && status != "oom") next
  table = get("machine") " " get("gpus")
  t = get("tensor"); c = get("context"); p = get("pipeline"); b = get("micro_batch")
  seconds["m"] = status == "ok" ? get("step_s") : 0
  seconds["p"] = get("predicted_to_fit") == "true" ? get("predicted_step_s") : 0
  if (get("predicted_safe") == "true") { safe[get("machine")]++; safe_out[get("machine")] += status == "oom" }
  for (who in seconds) {
    if (seconds[who] == 0) continue
    ran[who, table]++
    if (best[who, table] == "" || seconds[who] < best[who, table]) {
      best[who, table] = seconds[who]; product[who, table] = t * c * p; layout[who, table] = "t" t " c" c " p" p " b" b
    }
    if (least[who, table] == "" || t * c * p < least[who, table]) least[who, table] = t * c * p
    at[who, table "|" t " " c " " p "|" b] = seconds[who]
  }
  tables[table] = 1
  layouts[table "|" t " " c " " p] = 1
}

function say(finding, measured, predicted, same) {
  printf "%-66s  %-20s  %-20s  %s\n", finding, measured, predicted, same ? "yes" : "no"
}

END {
  printf "%-66s  %-20s  %-20s  %s\n", "finding", "measured", "predicted", "agrees"
  for (table in tables) {
    if (ran["m", table] < 2) continue
    n++
    same += layout["m", table] == layout["p", table]
    for (who in seconds) small[who] += product[who, table] == least[who, table]
  }
  say("the best layout has the least t x c x p that fits (tables)", small["m"] " of " n, small["p"] " of " n, \
      (small["m"] * 2 > n) == (small["p"] * 2 > n))
  for (key in layouts) for (b = 1; b <= 2; b *= 2) {
    one = key "|" b; two = key "|" 2 * b
    if (!(at["m", one] > 0 && at["m", two] > 0 && at["p", one] > 0 && at["p", two] > 0)) continue
    pairs++
    for (who in seconds) faster[who] += at[who, two] < at[who, one]
  }
  say("twice the micro-batch is faster where both fit", faster["m"] " of " pairs " pairs", faster["p"] " of " pairs " pairs", \
      (faster["m"] * 2 > pairs) == (faster["p"] * 2 > pairs))
  say("the best layout is the one recommended (tables)", n " of " n, same " of " n, same == n)
  for (machine in safe) lines[++k] = machine
  if (k == 2 && lines[1] > lines[2]) { swap = lines[1]; lines[1] = lines[2]; lines[2] = swap }
  for (i = 1; i <= k; i++)
    say("of what is called safe on " lines[i] ", out of memory", safe_out[lines[i]] " of " safe[lines[i]], "0", safe_out[lines[i]] == 0)
}

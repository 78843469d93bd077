# Findings of Hagemann et al. 2023, asked of the measured runs and of predicted ones: reads what
#   slipway validate scenarios/studies/hagemann-2023/runs.csv --rows FILE
# writes. Prints, per finding, what the measurements say, what the predictions say, and whether they agree.
BEGIN { FS = "," }
/^#/ { next }
!have { for (i = 1; i <= NF; i++) col[$i] = i; have = 1; next }

function get(name) { return $(col[name]) }
function better(seconds, best) { return seconds > 0 && (best == "" || seconds < best) }
function keep_best(who, table, seconds, text, batch, kind) {
  if (!better(seconds, best[who, table])) return
  best[who, table] = seconds; layout[who, table] = text; micro_batch[who, table] = batch; kernels[who, table] = kind
}

{
  table = get("model") " at " get("sequence") " on " get("gpus")
  tables[table] = 1
  b = get("micro_batch"); t = get("tensor"); p = get("pipeline"); sp = get("sequence_parallel") == "true"
  kind = get("kernels") (get("recompute") == "full" ? " with recompute" : "")
  text = "b" b " t" t " p" p (sp ? " sp" : "")
  seconds["m"] = get("status") == "ok" ? get("step_s") : 0
  # Predicted: whatever the memory verdict lets run, measured or not.
  seconds["p"] = get("predicted_to_fit") == "true" ? get("predicted_step_s") : 0
  out["m"] = get("status") == "oom"; out["p"] = get("predicted_to_fit") == "false"
  for (who in seconds) {
    keep_best(who, table, seconds[who], text, b, kind)
    if (seconds[who] > 0) {
      s = table "|" b "|" sp "|" kind "|" t "x" p
      at[who, s] = seconds[who]
    }
    # The smallest t x p that fits, without recompute, best kernels, without sequence parallel.
    if (kind == "flash2_rmsnorm" && !sp && seconds[who] > 0 && (least[who, table, b] == "" || t * p < least[who, table, b]))
      least[who, table, b] = t * p
    spkey = table "|" b "|" kind "|" t "x" p
    if (t > 1 && sp) { with[who, spkey] = seconds[who]; with_out[who, spkey] = out[who]; pairs[spkey] = 1 }
    if (t > 1 && !sp) { without[who, spkey] = seconds[who]; without_out[who, spkey] = out[who]; plain[spkey] = 1 }
  }
  layouts[table "|" b "|" sp "|" kind] = 1
}

function say(finding, measured, predicted, same) {
  printf "%-66s  %-28s  %-28s  %s\n", finding, measured, predicted, same ? "yes" : "no"
}

END {
  say_head = sprintf("%-66s  %-28s  %-28s  %s", "finding", "measured", "predicted", "agrees"); print say_head
  n = 0
  for (table in tables) {
    n++
    one["m"] += micro_batch["m", table] == 1; one["p"] += micro_batch["p", table] == 1
    top["m"] += kernels["m", table] == "flash2_rmsnorm"; top["p"] += kernels["p", table] == "flash2_rmsnorm"
  }
  say("the best layout has micro-batch 1 (tables)", one["m"] " of " n, one["p"] " of " n, one["m"] == one["p"])
  say("flash 2 and norm kernels without recompute win (tables)", top["m"] " of " n, top["p"] " of " n, top["m"] == top["p"])

  big = "llama-13b-v128k at 2048 on 64"
  for (who in one) {
    text = ""
    for (b = 1; b <= 8; b *= 2) text = text (b > 1 ? " " : "") (least[who, big, b] == "" ? "-" : least[who, big, b])
    grow[who] = text
  }
  print "larger micro-batches need more model parallelism: least t x p for"
  say("  micro-batch 1 2 4 8 (13B at 2k, 64 GPUs, no recompute)", grow["m"], grow["p"], grow["m"] == grow["p"])

  for (key in layouts) for (i = 1; i <= 3; i++) for (j = 0; j < i; j++) {
    a = key "|" 2 ^ i "x" 2 ^ j; c = key "|" 2 ^ j "x" 2 ^ i
    for (who in one) if (at["m", a] > 0 && at["m", c] > 0 && at["p", a] > 0 && at["p", c] > 0) {
      count[who]++; slower[who] += at[who, a] > at[who, c]
    }
  }
  say("tensor (t, p) costs more than pipeline (p, t) of equal degree", slower["m"] " of " count["m"] " pairs", \
      slower["p"] " of " count["p"] " pairs", slower["m"] * 2 > count["m"] && slower["p"] * 2 > count["p"])

  for (key in pairs) {
    if (!(key in plain)) continue
    for (who in one) {
      if (without_out[who, key] && with[who, key] > 0) opens[who]++
      if (without["m", key] > 0 && with["m", key] > 0 && without["p", key] > 0 && with["p", key] > 0) {
        both[who]++; faster[who] += with[who, key] < without[who, key]
      }
    }
  }
  say("sequence parallel makes a layout fit that does not without", opens["m"] + 0 " layouts", opens["p"] + 0 " layouts", \
      (opens["m"] > 0) == (opens["p"] > 0))
  say("sequence parallel is faster where both fit", faster["m"] + 0 " of " both["m"] " pairs", faster["p"] + 0 " of " both["p"] " pairs", \
      (faster["m"] * 2 > both["m"]) == (faster["p"] * 2 > both["p"]))

  # 6N + 12·L·h·s FLOPs a token, N with both embeddings; 4,194,304 tokens, 312 TFLOP/s.
  flops = 4194304 * (6 * 13998904320 + 12 * 40 * 5120 * 2048)
  for (who in one) mfu[who] = sprintf("%s, %.1f %% MFU", layout[who, big], 100 * flops / (64 * 312e12 * best[who, big]))
  say("the best of 13B at 2k on 64 GPUs", mfu["m"], mfu["p"], layout["m", big] == layout["p", big])
}

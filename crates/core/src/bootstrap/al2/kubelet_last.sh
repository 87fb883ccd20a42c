#!/bin/bash
# nodemolt: the kubelet starts last. See docs/userdata-contract.md, version 1.
export LC_ALL=C
exec > >(tee -a /var/log/user-data.log | logger -t user-data -s 2> /dev/console) 2>&1

config=/etc/kubernetes/kubelet/kubelet-config.json
custom=/etc/kubernetes/kubelet/kubelet-config-custom.json
extra=/etc/kubernetes/kubelet/kubelet-extra-args-custom
saved=/run/nodemolt/kubelet-config.json
units=/etc/systemd/system/kubelet.service.d
flag='^--[a-z0-9-]+=[A-Za-z0-9._:/=,@+<-]*$'
owned_keys=@OWNED_KEYS@
owned_flags=@OWNED_FLAGS@

say() { echo "nodemolt: $*"; }
object() { jq -e -s 'length == 1 and (.[0] | type) == "object"' "$1" > /dev/null 2>&1; }

if [ -e /run/nodemolt/hold-kubelet ]; then
  say '/run/nodemolt/hold-kubelet exists: the kubelet stays down. Remove it and run this again.'
  exit 0
fi
if [ ! -e /run/nodemolt/bootstrapped ]; then
  say 'bootstrap.sh did not get as far as the kubelet: it stays down.'
  exit 1
fi

# RFC 7396: null takes a key away, maps merge at every depth, all else replaces.
if object "$saved"; then
  object "$config" || { say "$config was left broken; it is as before again"; cp "$saved" "$config"; }
  echo '{}' > /run/nodemolt/patch.json
  if [ -e "$custom" ]; then
    if object "$custom"; then cp "$custom" /run/nodemolt/patch.json
    else say "$custom is not one JSON object: it is left out"; fi
  fi
  if jq -n --slurpfile config "$config" --slurpfile patch /run/nodemolt/patch.json \
    --slurpfile saved "$saved" --argjson owned "$owned_keys" '
      def patched($with):
        if ($with | type) != "object" then $with else
          reduce ($with | keys[]) as $key (if type == "object" then . else {} end;
            if $with[$key] == null then del(.[$key])
            else .[$key] = (.[$key] | patched($with[$key])) end)
        end;
      reduce $owned[] as $key ($config[0] | patched($patch[0]);
        if ($saved[0] | has($key)) then .[$key] = $saved[0][$key] else del(.[$key]) end)
    ' > /run/nodemolt/merged.json; then
    cat /run/nodemolt/merged.json > "$config"
  else
    say "could not merge $custom: it is left out"
  fi
fi

# One flag per line. Theirs come first: where a flag is given twice the kubelet takes the last.
if [ -e "$extra" ]; then
  theirs=
  while IFS= read -r line || [ -n "$line" ]; do
    [[ -z $line || $line == '#'* ]] && continue
    if [[ ! $line =~ $flag ]]; then
      say "$extra: no --name=value that can be passed on: ${line%%=*}"
    elif [[ " $owned_flags " == *" ${line%%=*} "* ]]; then
      say "$extra: ${line%%=*} belongs to the class: it is left out"
    else
      theirs="$theirs$line "
    fi
  done < "$extra"
  ours=$(sed -n "s/^Environment='KUBELET_EXTRA_ARGS=\(.*\)'\$/\1/p" "$units/30-kubelet-extra-args.conf")
  [ -n "$ours" ] || { say "$units/30-kubelet-extra-args.conf was changed: $extra is left out"; theirs=; }
  [ -z "$theirs" ] || printf "[Service]\nEnvironment='KUBELET_EXTRA_ARGS=%s%s'\n" \
    "$theirs" "$ours" > "$units/40-nodemolt-extra-args.conf"
fi

rm -f /run/systemd/system/kubelet.service.d/00-nodemolt-hold.conf
systemctl daemon-reload
systemctl enable kubelet
systemctl start kubelet
